import type { IncomingHttpHeaders } from 'node:http';
import { sameStrongly, sameWeakly } from '../domain/entity-tag.ts';
import { refuse } from '../domain/errors.ts';
import { etagCondition, httpDateS } from './header-values.ts';

/** What conditions are compared with. */
export interface Validators {
  readonly etag: string;
  /** Whole seconds since 1970, as `Last-Modified` says. */
  readonly modifiedS: number;
}

/**
 * The conditions of a GET or HEAD in the order of RFC 9110, 13.2.2.
 * @returns `not_modified` for 304, otherwise `go_on`. Throws `precondition_failed`, and `invalid_request` for a malformed list.
 */
export function readCondition(headers: IncomingHttpHeaders, { etag, modifiedS }: Validators): 'go_on' | 'not_modified' {
  const ifMatch = etagCondition(headers['if-match'], 'If-Match');
  const ifNoneMatch = etagCondition(headers['if-none-match'], 'If-None-Match');
  const failed = (): Error => refuse('precondition_failed', 'The file is another version.', { etag });
  if (ifMatch !== null) {
    if (ifMatch !== '*' && !ifMatch.some((tag) => sameStrongly(tag, etag))) throw failed();
  } else {
    const since = httpDateS(headers['if-unmodified-since']);
    if (since !== null && modifiedS > since) throw failed();
  }
  if (ifNoneMatch !== null) return ifNoneMatch === '*' || ifNoneMatch.some((tag) => sameWeakly(tag, etag)) ? 'not_modified' : 'go_on';
  const since = httpDateS(headers['if-modified-since']);
  return since !== null && modifiedS <= since ? 'not_modified' : 'go_on';
}

/**
 * Whether a `Range` may be honoured. A date is too weak a validator for files that may change twice in a second, so only a
 * strong entity-tag counts; otherwise the whole file is sent, which is always right.
 */
export function ifRangeHolds(header: string | string[] | undefined, etag: string): boolean {
  return header === undefined || (typeof header === 'string' && sameStrongly(header.trim(), etag));
}

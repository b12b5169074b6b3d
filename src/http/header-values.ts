import type { IncomingMessage } from 'node:http';
import { refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import { hasControlCharacter } from '../domain/sent-text.ts';
import type { EtagCondition } from '../domain/write.ts';

/** Reading of single header fields, checked for form. Everything throws `invalid_request` unless it says otherwise. */

/** Every value of a header as it was sent: Node joins repeats with a comma, which would hide them (trap of Part 3, duplicate header). */
export function sentValues(request: IncomingMessage, name: string): string[] {
  const values: string[] = [];
  const { rawHeaders } = request;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() === name) values.push(rawHeaders[i + 1] ?? '');
  }
  return values;
}

/**
 * The fields that have one value and no list form (RFC 9110, 5.3), of those that are read here. Of most of these Node keeps the first and
 * drops the rest without a word: a proxy in front may have gone by the last. Fields of our own are judged where
 * they are read; two origins are joined and are nobody's (`browser-rules.ts`).
 */
const SINGLETONS: ReadonlyMap<string, string> = new Map(
  [
    'Authorization',
    'Content-Range',
    'Content-Type',
    'Host',
    'If-Modified-Since',
    'If-Range',
    'If-Unmodified-Since',
    'Last-Event-ID',
    'Range',
    'Sec-Fetch-Site',
  ].map((name) => [name.toLowerCase(), name]),
);

/** The first such field that was sent more than once; `null` when there is none. */
export function repeatedSingleton({ rawHeaders }: IncomingMessage): string | null {
  const seen = new Set<string>();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = SINGLETONS.get(rawHeaders[i]?.toLowerCase() ?? '');
    if (name === undefined) continue;
    if (seen.has(name)) return name;
    seen.add(name);
  }
  return null;
}

/** The one value of a header that may come once; `null` when absent. */
export function singleValue(request: IncomingMessage, name: string, bytesMax: number): string | null {
  if (request.headers[name] === undefined) return null;
  const values = sentValues(request, name);
  const value = values[0];
  if (values.length !== 1 || value === undefined) throw refuse('invalid_request', `${name} may be sent once.`);
  if (value === '') throw refuse('invalid_request', `${name} is empty.`);
  if (Buffer.byteLength(value) > bytesMax) throw refuse('invalid_request', `${name} is over ${bytesMax} bytes.`);
  return value;
}

/** The fencing token as sent, not judged here. Throws `invalid_token` for an empty or repeated header. */
export function presentedToken(request: IncomingMessage): string | null {
  if (request.headers['x-fencing-token'] === undefined) return null;
  const values = sentValues(request, 'x-fencing-token');
  const value = values[0];
  if (values.length !== 1 || value === undefined) throw refuse('invalid_token', 'X-Fencing-Token may be sent once.');
  if (value === '') throw refuse('invalid_token', 'X-Fencing-Token is empty. Leave the header out to write without a token.');
  if (value.length > LIMITS.signedTokenBytesMax) throw refuse('invalid_token', 'X-Fencing-Token is too long.');
  return value;
}

/** The same for a token in a JSON body, by its member; `null` and absent are no token. Throws `invalid_token`. */
export function tokenMember(value: unknown, name: string): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'string') throw refuse('invalid_token', `${name} is a string: the fencing token as it was given, in quotes.`);
  if (value === '') throw refuse('invalid_token', `${name} is empty. Leave it out to go without a token.`);
  if (value.length > LIMITS.signedTokenBytesMax) throw refuse('invalid_token', `${name} is too long.`);
  return value;
}

/** A label in a header: UTF-8, which Node hands over as Latin-1. */
export function labelValue(request: IncomingMessage, name: string, bytesMax: number): string | null {
  const value = singleValue(request, name, bytesMax);
  if (value === null) return null;
  const text = Buffer.from(value, 'latin1').toString('utf8');
  if (hasControlCharacter(text) || text.includes('\ufffd')) throw refuse('invalid_request', `${name} is not plain UTF-8 text.`);
  return text;
}

const DECIMAL = /^(0|[1-9][0-9]{0,14})$/;

/** A whole number from 0 to `max`. */
export function integerValue(request: IncomingMessage, name: string, max: number): number | null {
  const value = singleValue(request, name, 32);
  if (value === null) return null;
  const number = DECIMAL.test(value) ? Number(value) : Number.NaN;
  if (!(number <= max)) throw refuse('invalid_request', `${name} is a whole number from 0 to ${max}.`);
  return number;
}

export function booleanValue(request: IncomingMessage, name: string): boolean {
  const value = singleValue(request, name, 32)?.toLowerCase() ?? 'false';
  if (value !== 'true' && value !== 'false') throw refuse('invalid_request', `${name} is true or false.`);
  return value === 'true';
}

const ENTITY_TAG = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/;

/** `If-Match` and `If-None-Match`: `*` or a list of entity-tags (RFC 9110, 13.1). A malformed condition is never taken as absent. */
export function etagCondition(value: string | undefined, name: string): EtagCondition | null {
  if (value === undefined) return null;
  let rest = value.trim();
  if (rest === '*') return '*';
  const tags: string[] = [];
  while (rest !== '') {
    if (rest.startsWith(',')) {
      rest = rest.slice(1).trimStart();
      continue;
    }
    const tag = ENTITY_TAG.exec(rest)?.[0];
    if (tag === undefined || tags.length >= LIMITS.entityTagsMax)
      throw refuse('invalid_request', `${name} is * or a list of at most ${LIMITS.entityTagsMax} quoted entity-tags.`);
    tags.push(tag);
    rest = rest.slice(tag.length).trimStart();
    if (rest !== '' && !rest.startsWith(',')) throw refuse('invalid_request', `${name} is not a list of entity-tags.`);
  }
  if (tags.length === 0) throw refuse('invalid_request', `${name} is empty.`);
  return tags;
}

const HTTP_DATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? /;
const MS_PER_SECOND = 1_000;

/** Whole seconds since 1970. A date that cannot be read is ignored (RFC 9110, 13.1.3 and 13.1.4). */
export function httpDateS(value: string | undefined): number | null {
  if (value === undefined || !HTTP_DATE.test(value)) return null;
  const ms = Date.parse(value);
  return Number.isNaN(ms) ? null : Math.floor(ms / MS_PER_SECOND);
}

/**
 * Step 2 of a write over HTTP: naming. The framework's router decodes wildcards more than once would be safe (trap F20), so the
 * paths that name resources never reach it: it sees a fixed placeholder, and the raw path is decoded here, once.
 */
import { refuse } from '../domain/errors.ts';
import { isVolumeName, type NameForm, segmentsFromText, segmentsFromUrl } from '../domain/resource.ts';

/** Prefixes below which everything is `{volume}/{path}`. */
const RESOURCE_PREFIXES = ['/v1/files/', '/v1/locks/', '/v1/watch/', '/v1/admin/fences/'] as const;
const ABSOLUTE_FORM = /^https?:\/\/([^/?#]*)/i;
/** No route has this name, so a URL that cannot be decoded ends where unknown ones do. */
const UNDECODABLE = '/-';

/** The path of a request target, still encoded, without the query; absolute-form (RFC 9112, 3.2.2) is understood. */
export function rawPathOf(target: string): string {
  const path = target.replace(ABSOLUTE_FORM, '');
  const end = path.search(/[?#]/);
  const cut = end === -1 ? path : path.slice(0, end);
  return cut === '' ? '/' : cut;
}

/** Host and port of an absolute-form target, which then say for whom the request is (RFC 9112, 3.2.2); `null` for any other form. */
export function authorityOf(target: string): string | null {
  return ABSOLUTE_FORM.exec(target)?.[1] ?? null;
}

function queryOf(target: string): string {
  const start = target.indexOf('?');
  return start === -1 ? '' : target.slice(start);
}

/** What the router sees in place of a request target. */
export function routedUrl(target: string): string {
  const path = rawPathOf(target);
  const query = queryOf(target);
  if (!path.startsWith('/') && path !== '*') return UNDECODABLE;
  for (const prefix of RESOURCE_PREFIXES) {
    const below = path.startsWith(prefix) ? path.slice(prefix.length) : '';
    if (!below.includes('/')) continue;
    return `${prefix}-/-${prefix === '/v1/files/' && below.endsWith('/') ? '/' : ''}${query}`;
  }
  return decoded(path) === null ? UNDECODABLE : `${path}${query}`;
}

/** `null` when it cannot be decoded. */
function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** What a resource path in a URL names. `directory`: it ended with a slash. */
export interface NamedTarget {
  readonly volume: string;
  /** Empty for the root of the volume, which only a directory can be. */
  readonly segments: readonly string[];
  readonly directory: boolean;
}

/** Reads the raw target of a routed request. Throws `invalid_path`, `volume_not_found` (a name that no volume can have). */
export function namedTarget(target: string, form: NameForm = 'text'): NamedTarget {
  const path = rawPathOf(target);
  const prefix = RESOURCE_PREFIXES.find((candidate) => path.startsWith(candidate)) ?? '';
  if (target.includes('#')) throw refuse('invalid_path', 'A URL that is sent has no fragment.');
  const below = path.slice(prefix.length);
  const slash = below.indexOf('/');
  const volume = decoded(below.slice(0, slash));
  if (volume === null || !isVolumeName(volume)) throw refuse('volume_not_found', 'There is no volume of this name.');
  const rest = below.slice(slash + 1);
  if (rest === '') return { volume, segments: [], directory: true };
  const directory = rest.endsWith('/');
  return { volume, segments: segmentsFromUrl(directory ? rest.slice(0, -1) : rest, form), directory };
}

/** Checks a plain-text path of a query. */
export function pathFromText(text: string): string {
  return segmentsFromText(text).join('/');
}

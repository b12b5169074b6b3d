import { FencegateError } from './errors.ts';

/**
 * The URL path of `volume/path`. Segments are encoded here once; what would change the meaning of a URL on its way (`.`, `..`) is
 * refused, everything else is the gateway's to judge.
 * Throws `invalid_path`.
 */
export function resourceUrlPath(prefix: '/v1/files' | '/v1/locks' | '/v1/watch' | '/v1/admin/fences', name: string): string {
  const segments = name.split('/');
  if (segments.length < 2) throw invalid('A resource is written volume/path.');
  if (segments.some((segment) => segment === '.' || segment === '..')) throw invalid('The path has a "." or ".." segment.');
  try {
    return `${prefix}/${segments.map(encodeURIComponent).join('/')}`;
  } catch (cause) {
    throw invalid('The path is not valid Unicode.', cause);
  }
}

/** The name of a directory ends with a slash. */
export function directoryName(name: string): string {
  return name.endsWith('/') ? name : `${name}/`;
}

function invalid(detail: string, cause?: unknown): FencegateError {
  return new FencegateError('invalid_path', { detail, cause });
}

import { create as contentDisposition } from 'content-disposition';
import mime from 'mime';
import type { Resource } from '../domain/resource.ts';
import { digestField } from './digest-headers.ts';

/** What a browser may show in place. Everything else is saved: a file of a volume must never run as a page of this gateway. */
const SHOWN: ReadonlySet<string> = new Set(['text/plain', 'image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'image/bmp']);
/** In a name that is not UTF-8 (`segment-bytes.ts`); a header can say that only so. */
const ALONE = /\p{Surrogate}/gu;
const MS_PER_SECOND = 1_000;

export function mediaTypeOfName(path: string): string {
  return mime.getType(path) ?? 'application/octet-stream';
}

export function lastModified(modifiedS: number): string {
  return new Date(modifiedS * MS_PER_SECOND).toUTCString();
}

/** The headers of every answer about a file, 304 too. */
export function validatorHeaders(etag: string, modifiedS: number, sha256: string | null): Record<string, string> {
  return {
    etag,
    'last-modified': lastModified(modifiedS),
    'accept-ranges': 'bytes',
    'cache-control': 'no-cache',
    ...(sha256 === null ? {} : { 'repr-digest': digestField(sha256) }),
  };
}

/** The headers that go with the bytes of a file. */
export function representationHeaders(resource: Resource): Record<string, string> {
  const type = mediaTypeOfName(resource.path);
  const name = resource.path.slice(resource.path.lastIndexOf('/') + 1);
  return {
    'content-type': type,
    'x-content-type-options': 'nosniff',
    'content-security-policy': "sandbox; default-src 'none'",
    ...(SHOWN.has(type) ? {} : { 'content-disposition': contentDisposition(name.replace(ALONE, '\ufffd')) }),
  };
}

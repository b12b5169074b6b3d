import { GatewayError } from './errors.ts';
import { LIMITS } from './limits.ts';
import { isOfBytes, nameOnDisk, segmentOfBytes } from './segment-bytes.ts';

/**
 * A resource: volume + canonical path. Decoded once, canonicalised once; no raw path passes this point (trap F20).
 * `key` names the fence: where a volume may fold names it is coarser than `name`, so that two spellings of one file share one fence (trap F15, F16).
 */
export interface Resource {
  readonly volume: string;
  /** Canonical path inside the volume: no leading or trailing slash. */
  readonly path: string;
  /** `volume/path`, as people and clients see it. */
  readonly name: string;
  /** What leases, marks and mutexes are keyed by. */
  readonly key: string;
}

const VOLUME_NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this looks for
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
const LONE_SURROGATE = /\p{Surrogate}/u;

export function isVolumeName(text: string): boolean {
  return VOLUME_NAME.test(text);
}

/** Names that belong to the gateway or to an NFS client: invisible to readers, unwritable. */
export function isHiddenSegment(segment: string): boolean {
  return segment === '.fencegate' || segment.startsWith('.nfs');
}

function invalid(detail: string): GatewayError {
  return new GatewayError('invalid_path', { detail });
}

/** Checks one decoded segment. Throws `invalid_path`. */
export function assertSegment(segment: string, form: NameForm = 'text'): void {
  if (segment === '') throw invalid('The path has an empty segment.');
  if (segment === '.' || segment === '..') throw invalid('The path has a "." or ".." segment.');
  if (segment.includes('/')) throw invalid('A segment of the path contains a slash.');
  if (segment.includes('\\')) throw invalid('The path contains a backslash.');
  if (CONTROL.test(segment)) throw invalid('The path contains a control character.');
  if (LONE_SURROGATE.test(segment) && (form === 'text' || !isOfBytes(segment))) throw invalid('The path is not valid Unicode.');
  if (Buffer.byteLength(nameOnDisk(segment)) > LIMITS.segmentBytesMax)
    throw invalid(`A segment of the path is over ${LIMITS.segmentBytesMax} bytes.`);
}

/** What a name must be: text, as everything that is written, or any bytes, as what others left there for readers (trap F22). */
export type NameForm = 'text' | 'bytes';

function decodeSegment(raw: string, form: NameForm): string {
  try {
    return decodeURIComponent(raw);
  } catch {
    const ofBytes = form === 'bytes' ? segmentOfBytes(raw) : null;
    if (ofBytes === null) throw invalid('The path is not percent-encoded UTF-8.');
    return ofBytes;
  }
}

/** Splits a raw (still encoded) URL path below the volume. A trailing slash must have been cut off by the caller. */
export function segmentsFromUrl(raw: string, form: NameForm = 'text'): string[] {
  return assertSegments(
    raw.split('/').map((segment) => decodeSegment(segment, form)),
    form,
  );
}

/** Splits a plain-text path, as JSON bodies and query parameters carry it. */
export function segmentsFromText(text: string): string[] {
  return assertSegments(text.split('/'), 'text');
}

function assertSegments(segments: string[], form: NameForm): string[] {
  for (const segment of segments) assertSegment(segment, form);
  if (Buffer.byteLength(segments.join('/')) > LIMITS.pathBytesMax) throw invalid(`The path is over ${LIMITS.pathBytesMax} bytes.`);
  return segments;
}

/** NFKC(lower(upper(NFKD(name)))): too coarse is safe, too fine is not (`write-protocol.md`, Names). */
export function foldedKey(path: string): string {
  return path.normalize('NFKD').toUpperCase().toLowerCase().normalize('NFKC');
}

/** Makes the resource of checked segments. `folds`: whether the volume folds or may fold names. */
export function resourceOf(volume: string, segments: readonly string[], folds: boolean): Resource {
  const path = segments.join('/');
  const name = `${volume}/${path}`;
  return { volume, path, name, key: folds ? `${volume}/${foldedKey(path)}` : name };
}

/** Splits `vol/path` as JSON bodies carry it. Throws `invalid_path`. */
export function splitResourceName(text: string): { volume: string; segments: string[] } {
  const slash = text.indexOf('/');
  if (slash < 1) throw invalid('A resource is written volume/path.');
  const volume = text.slice(0, slash);
  if (!isVolumeName(volume)) throw invalid('The volume name is not valid.');
  return { volume, segments: segmentsFromText(text.slice(slash + 1)) };
}

/** The order in which several resources are taken, everywhere (no deadlock by construction). */
export function inCanonicalOrder(resources: readonly Resource[]): Resource[] {
  return [...resources].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
}

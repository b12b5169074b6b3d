import { type GatewayError, refuse } from './errors.ts';
import { LIMITS } from './limits.ts';
import { isHiddenSegment, type Resource, resourceOf, segmentsFromText, splitResourceName } from './resource.ts';
import type { Volumes } from './volume.ts';

/** Whose names are hidden: readers are told that nothing is there, writers that the name is not valid. */
export type NameUse = 'read' | 'write';

/** Makes the resource of a named target. Throws `volume_not_found`, and for hidden names `not_found` or `invalid_path`. */
export function resourceNamed(volumes: Volumes, volume: string, segments: readonly string[], use: NameUse): Resource {
  const folds = foldsNames(volumes, volume);
  if (segments.some(isHiddenSegment)) throw hidden(use);
  if (segments.length === 0) throw refuse('invalid_path', 'The root of a volume cannot be written, leased or removed.');
  return resourceOf(volume, segments, folds);
}

/** A resource as JSON bodies and messages carry it: `volume/path`, plain text, no trailing slash. */
export function resourceFromText(volumes: Volumes, text: string, use: NameUse): Resource {
  const { volume, segments } = splitResourceName(text);
  return resourceNamed(volumes, volume, segments, use);
}

/** A lock-only volume has names, but no file system that could fold them. */
function foldsNames(volumes: Volumes, volume: string): boolean {
  return volumes.policy(volume).path !== null && volumes.get(volume).folds;
}

function hidden(use: NameUse): GatewayError {
  return use === 'read'
    ? refuse('not_found', 'There is nothing of this name.')
    : refuse('invalid_path', 'Names like .fencegate and .nfs* belong to the gateway or to NFS.');
}

/** What a name as it was sent is about, for the record of a refusal that comes before it was looked at; `null` when it is not a valid one. */
export function subjectFromText(text: string): { readonly volume: string; readonly path: string } | null {
  const slash = text.indexOf('/');
  if (slash < 1 || Buffer.byteLength(text) > LIMITS.pathBytesMax) return null;
  try {
    return { volume: text.slice(0, slash), path: segmentsFromText(text.slice(slash + 1)).join('/') };
  } catch {
    // Not a valid name: the record is about the principal alone.
    return null;
  }
}

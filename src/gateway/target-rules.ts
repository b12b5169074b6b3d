import { refuse } from '../domain/errors.ts';
import type { TargetFacts } from '../domain/file-facts.ts';

/** What may stand at the name of a write, one rule a verb (trap F28, F17, F27). Each throws the refusal. */

/** A regular file, or nothing. */
export function fileOrAbsent(target: TargetFacts | null): void {
  if (target === null) return;
  regularFile(target);
}

/** A regular file. */
export function existingFile(target: TargetFacts | null): asserts target is TargetFacts {
  if (target === null) throw refuse('not_found', 'There is no such file.');
  regularFile(target);
}

/** A file that may be replaced or changed: a read-only bit set by the owner is honoured (trap F27). */
export function replaceable(target: TargetFacts | null): void {
  fileOrAbsent(target);
  if (target !== null && (target.mode & 0o222) === 0) {
    throw refuse('forbidden', 'The file has no write permission for anybody; the gateway honours that.');
  }
}

/** A directory, or nothing. */
export function directoryOrAbsent(target: TargetFacts | null): void {
  if (target === null || target.kind === 'directory') return;
  if (target.kind === 'file') throw refuse('already_exists', 'There is a file of this name.');
  regularFile(target);
}

/** A directory. */
export function existingDirectory(target: TargetFacts | null): void {
  if (target === null) throw refuse('not_found', 'There is no such directory.');
  if (target.kind === 'file') throw refuse('not_a_directory', 'The name is a file, not a directory.');
  directoryOrAbsent(target);
}

function regularFile(target: TargetFacts): void {
  if (target.kind === 'directory') throw refuse('is_a_directory', 'The name is a directory.');
  if (target.kind === 'symbolic_link') throw refuse('symbolic_link', 'The name is a symbolic link; links are not followed.');
  if (target.kind === 'special') throw refuse('special_file', 'The name is a device, FIFO or socket.');
}

/**
 * What identifies one version of a file: compared by recovery, by the settle loop and by preconditions.
 * Not the device number, which changes over a reboot.
 */
export interface FileFacts {
  readonly ino: bigint;
  readonly sizeBytes: number;
  readonly mtimeNs: bigint;
}

export type TargetKind = 'file' | 'directory' | 'symbolic_link' | 'special';

/** What is found at a name, from `fstat` of an opened descriptor (never a cached `stat`, trap F9). */
export interface TargetFacts extends FileFacts {
  readonly kind: TargetKind;
  readonly links: number;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

/** A staged file once its last byte is written; `name` is its name in the incarnation directory. */
export interface StagedFacts extends FileFacts {
  readonly name: string;
  /** Lower-case hex. */
  readonly sha256: string;
}

/** `"<ino>-<size>-<mtime_ns>"` in base 36, quotes included: the same from every gateway and after a lost journal. */
export function etagOf(facts: FileFacts): string {
  return `"${facts.ino.toString(36)}-${facts.sizeBytes.toString(36)}-${facts.mtimeNs.toString(36)}"`;
}

/** The tag that a written file has: it may have been finished under another inode than was promised. `null` promises no file. */
export function etagFound(promised: string | null, after: FileFacts | null): string | null {
  return promised === null || after === null ? promised : etagOf(after);
}

export function sameVersion(a: FileFacts, b: FileFacts): boolean {
  return a.ino === b.ino && a.sizeBytes === b.sizeBytes && a.mtimeNs === b.mtimeNs;
}

import { refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';

/** Half open: `end` is the first byte that is not sent. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

const RANGE_SET = /^bytes=[ \t]*((?:[0-9]+-[0-9]*|-[0-9]+)(?:[ \t]*,[ \t]*(?:[0-9]+-[0-9]*|-[0-9]+))*)[ \t]*$/i;

/**
 * Reads `Range` against a size (RFC 9110, 14.1.2, 14.2). Another unit, or a header that is no range set, is ignored.
 * @returns the ranges that overlap the file, or `null` when the whole file is to be sent.
 * Throws `range_not_satisfiable` when none does, and for sets that only make work: too many, or overlapping.
 */
export function byteRanges(header: string | undefined, sizeBytes: number): readonly ByteRange[] | null {
  const set = RANGE_SET.exec(header ?? '')?.[1];
  if (set === undefined) return null;
  const specs = set.split(',');
  if (specs.length > LIMITS.byteRangesMax) throw unsatisfiable(`At most ${LIMITS.byteRangesMax} ranges are sent at once.`, sizeBytes);
  const ranges: ByteRange[] = [];
  for (const spec of specs) {
    const range = resolved(spec.trim(), sizeBytes);
    if (range === 'malformed') return null;
    if (range !== null) ranges.push(range);
  }
  if (ranges.length === 0) throw unsatisfiable('No range overlaps the file.', sizeBytes);
  if (overlap(ranges)) throw unsatisfiable('The ranges overlap.', sizeBytes);
  return ranges;
}

function resolved(spec: string, sizeBytes: number): ByteRange | 'malformed' | null {
  const dash = spec.indexOf('-');
  const first = spec.slice(0, dash);
  const last = spec.slice(dash + 1);
  if (first === '') {
    const suffix = Number(last);
    return suffix === 0 || sizeBytes === 0 ? null : { start: Math.max(0, sizeBytes - suffix), end: sizeBytes };
  }
  const start = Number(first);
  const end = last === '' ? sizeBytes : Number(last) + 1;
  if (end <= start && last !== '') return 'malformed';
  return start >= sizeBytes ? null : { start, end: Math.min(end, sizeBytes) };
}

function overlap(ranges: readonly ByteRange[]): boolean {
  const ordered = [...ranges].sort((a, b) => a.start - b.start);
  return ordered.some((range, i) => i > 0 && range.start < (ordered[i - 1]?.end ?? 0));
}

function unsatisfiable(detail: string, sizeBytes: number): Error {
  return refuse('range_not_satisfiable', detail, { size_bytes: sizeBytes });
}

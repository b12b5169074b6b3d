import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { LIMITS } from '../../domain/limits.ts';
import type { At, Descriptor } from '../descriptor.ts';
import { at } from '../descriptor.ts';
import { errnoOf } from '../errno.ts';
import type { FileCalls } from '../file-calls.ts';
import type { LateRenames } from '../late-renames.ts';
import type { Litter } from '../litter.ts';

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants;
/** Never follows a link, never waits for a FIFO (traps F18, F28). */
export const OPEN_READ = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;
export const OPEN_WRITE = constants.O_RDWR | O_NOFOLLOW | O_NONBLOCK;
export const OPEN_DIRECTORY = O_RDONLY | O_NOFOLLOW | constants.O_DIRECTORY;

/** The own incarnation directory, as far as a record needs it. */
export interface OwnDirectory {
  readonly descriptor: Descriptor;
  readonly litter: Litter;
  readonly lateRenames: LateRenames;
  /** For a draft of `target`; never the same twice, because what was left undone for one draft must not be done to the next. */
  draftName(target: string): string;
}

/** Runs `work` with an opened file and closes it; the first error wins over one of the close. */
export async function withOpen<T>(calls: FileCalls, where: At, flags: number, work: (file: Descriptor) => Promise<T>, mode = 0o600): Promise<T> {
  const file = await calls.open(where, flags, mode);
  let result: T;
  try {
    result = await work(file);
  } catch (thrown) {
    await calls.close(file).catch(() => undefined); // the work's own error is the one that matters
    throw thrown;
  }
  await calls.close(file);
  return result;
}

/** `null` instead of ENOENT; every other error stays an error (absence is never guessed). */
export async function orAbsent<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (thrown) {
    if (errnoOf(thrown) === 'ENOENT') return null;
    throw thrown;
  }
}

/** Feeds the file's bytes from `start` (to `end`, exclusive) to `take`, in bounded chunks. */
export async function eachChunk(
  calls: FileCalls,
  file: Descriptor,
  take: (chunk: Uint8Array, position: number) => Promise<void> | void,
  start = 0,
  end = Number.POSITIVE_INFINITY,
): Promise<number> {
  let position = start;
  while (position < end) {
    const buffer = Buffer.allocUnsafe(Math.min(LIMITS.copyChunkBytes, end - position));
    const count = await calls.read(file, buffer, position);
    if (count === 0) break;
    await take(buffer.subarray(0, count), position);
    position += count;
  }
  return position - start;
}

/** Lower-case hex of the whole file. */
export async function sha256Of(calls: FileCalls, file: Descriptor): Promise<string> {
  const hash = createHash('sha256');
  await eachChunk(calls, file, (chunk) => void hash.update(chunk));
  return hash.digest('hex');
}

/** Whether `length` bytes of `a` at `aStart` equal those of `b` at `bStart`. A file that ends early is not equal. */
export async function sameBytes(calls: FileCalls, a: Descriptor, aStart: number, b: Descriptor, bStart: number, length: number): Promise<boolean> {
  let equal = true;
  const compared = await eachChunk(
    calls,
    a,
    async (chunk, position) => {
      if (!equal) return;
      const other = Buffer.allocUnsafe(chunk.length);
      let filled = 0;
      while (filled < other.length) {
        const count = await calls.read(b, other.subarray(filled), bStart + (position - aStart) + filled);
        if (count === 0) break;
        filled += count;
      }
      equal = filled === chunk.length && other.equals(chunk);
    },
    aStart,
    aStart + length,
  );
  return equal && compared === length;
}

/** Reads a small record of ours; `null` when absent. Rejects above `LIMITS.volumeRecordBytesMax`. */
export async function readSmall(calls: FileCalls, where: At): Promise<Buffer | null> {
  return orAbsent(
    withOpen(calls, where, OPEN_READ, async (file) => {
      const chunks: Uint8Array[] = [];
      const size = await eachChunk(calls, file, (chunk) => void chunks.push(chunk), 0, LIMITS.volumeRecordBytesMax + 1);
      if (size > LIMITS.volumeRecordBytesMax) throw new Error('a record on the volume is larger than any that is written');
      return Buffer.concat(chunks);
    }),
  );
}

/**
 * Makes a small record durable and whole or absent: written as a draft in the own directory, synced, renamed, the target's directory synced.
 * The draft lies in the own incarnation directory, so a superseded process cannot rename its own record over a newer one.
 */
export async function writeSmall(calls: FileCalls, own: OwnDirectory, target: At, bytes: Uint8Array): Promise<void> {
  const record = String(target.name);
  own.lateRenames.assertNone(record);
  const name = own.draftName(record);
  const draft = at(own.descriptor, name);
  // Without it each write that a full disk refuses, or that hangs, would leave one.
  await own.litter.making(
    name,
    () => calls.unlink(draft),
    async (made) => {
      await withOpen(calls, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, async (file) => {
        made();
        await calls.writeAll(file, bytes, 0);
        await calls.fsync(file);
      });
      await own.lateRenames.watch(record, calls.rename(draft, target));
    },
  );
  await calls.fsync(target.dir);
  own.litter.sweep();
}

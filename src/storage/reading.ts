import { constants } from 'node:fs';
import type { Clock } from '../domain/clock.ts';
import { GatewayError, refuse } from '../domain/errors.ts';
import { etagOf, sameVersion, type TargetFacts } from '../domain/file-facts.ts';
import { LIMITS } from '../domain/limits.ts';
import { isHiddenSegment, type Resource } from '../domain/resource.ts';
import type { OpenedFile } from '../domain/volume.ts';
import type { Descriptor } from './descriptor.ts';
import { errnoOf, gatewayErrorOf, mapped } from './errno.ts';
import type { InPlaceReader, InPlaceWrites } from './in-place-writes.ts';
import { openFresh } from './open-fresh.ts';
import type { OwnVersions } from './own-versions.ts';
import { walkTo } from './path-walk.ts';
import type { VolumeRoom } from './room.ts';
import { lookAt } from './target.ts';
import { factsOf } from './target-kind.ts';

/** What reading needs of its volume. */
export interface ReadingRoom {
  readonly room: VolumeRoom;
  readonly clock: Clock;
  readonly inPlace: InPlaceWrites;
  readonly ownVersions: OwnVersions;
  /** How much of a file may be seen while an append to it is unsettled; `null`: all. */
  visibleBytes(resource: Resource): number | null;
}

const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
/** Others may write twice within one tick of the clock, so a tag of so young a file proves less than it says (trap F34). */
const STRONG_AFTER_MS = 2_000;

/**
 * Opens a file for one answer. Rejects with `not_found` (hidden names too), `is_a_directory`, `special_file`, `symbolic_link`, `not_a_directory`,
 * `forbidden`, `volume_unavailable`. A stale handle (the file was replaced in that moment) is opened anew, a few times (case B21, trap F10).
 */
export async function openFile(reading: ReadingRoom, resource: Resource): Promise<OpenedFile> {
  if (resource.path.split('/').some(isHiddenSegment)) throw refuse('not_found', 'There is no such file.');
  return mapped(async () => {
    for (let opens = 1; ; opens += 1) {
      try {
        return await openOnce(reading, resource);
      } catch (thrown) {
        if (errnoOf(thrown) !== 'ESTALE' || opens === LIMITS.staleOpensMax) throw thrown;
      }
    }
  });
}

async function openOnce(reading: ReadingRoom, resource: Resource): Promise<OpenedFile> {
  const { file, facts } = await openPlain(reading.room, resource);
  if (!reading.inPlace.isRunning(facts.ino)) return new PlainFile(reading, resource, file, facts);
  await reading.room.calls.close(file).catch(() => undefined);
  throw new GatewayError('volume_unavailable', { detail: 'The file is being changed in place.', retryAfterMs: 1_000 });
}

async function openPlain(room: VolumeRoom, resource: Resource): Promise<{ file: Descriptor; facts: TargetFacts }> {
  const place = await walkTo(room, resource);
  try {
    // A look first where it costs nothing: opening a FIFO, even without blocking, would let its writer through into nothing (trap F28).
    const seen = room.calls.local ? await lookAt(room, place) : null;
    if (seen !== null) assertPlain(seen);
    const file = await openFresh(room.calls, place.at, READ);
    try {
      const facts = factsOf(await room.calls.fstat(file));
      assertPlain(facts);
      return { file, facts };
    } catch (thrown) {
      await room.calls.close(file).catch(() => undefined);
      throw thrown;
    }
  } finally {
    place.close();
  }
}

function assertPlain({ kind }: TargetFacts): void {
  if (kind === 'directory') throw refuse('is_a_directory', 'There is a directory at this path.');
  if (kind === 'symbolic_link') throw refuse('symbolic_link', 'The path names a symbolic link.');
  if (kind === 'special') throw refuse('special_file', 'The path names a special file.');
}

class PlainFile implements OpenedFile {
  readonly facts: TargetFacts;
  readonly etag: string;
  readonly #reading: ReadingRoom;
  readonly #resource: Resource;
  readonly #whole: TargetFacts;
  readonly #guard: InPlaceReader;
  #file: Descriptor;
  #reopened = false;

  constructor(reading: ReadingRoom, resource: Resource, file: Descriptor, facts: TargetFacts) {
    this.#reading = reading;
    this.#resource = resource;
    this.#file = file;
    this.#whole = facts;
    this.#guard = reading.inPlace.enter(facts.ino);
    const visible = reading.visibleBytes(resource);
    const isCut = visible !== null && visible < facts.sizeBytes;
    this.facts = isCut ? { ...facts, sizeBytes: visible } : facts;
    // An unsettled append has touched the mtime, so no tag of this moment is anybody's version.
    this.etag = isCut || this.#isYoung(facts) ? `W/${etagOf(this.facts)}` : etagOf(this.facts);
  }

  async *read(start: number, end: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    for (let position = start; position < end; ) {
      signal.throwIfAborted();
      const chunk = Buffer.allocUnsafeSlow(Math.min(LIMITS.readChunkBytes, end - position));
      const count = await this.#readOnce(chunk, position);
      signal.throwIfAborted();
      if (this.#guard.cut) throw cut('The file was changed in place while it was read.');
      if (count === 0) throw cut('The file became shorter while it was read.');
      position += count;
      yield chunk.subarray(0, count);
    }
  }

  async close(): Promise<void> {
    this.#guard.leave();
    // Nothing was written through it; a failing close loses nothing.
    await this.#reading.room.calls.close(this.#file).catch(() => undefined);
  }

  async #readOnce(chunk: Uint8Array, position: number): Promise<number> {
    const { calls } = this.#reading.room;
    try {
      return await calls.read(this.#file, chunk, position);
    } catch (thrown) {
      if (errnoOf(thrown) !== 'ESTALE' || this.#reopened) throw gatewayErrorOf(thrown);
      this.#reopened = true;
      return mapped(async () => calls.read(await this.#sameFileAgain(), chunk, position));
    }
  }

  /** The rest of an answer must be of the version its tag named. */
  async #sameFileAgain(): Promise<Descriptor> {
    const { room } = this.#reading;
    const { file, facts } = await openPlain(room, this.#resource);
    const isSame = sameVersion(facts, this.#whole);
    await room.calls.close(isSame ? this.#file : file).catch(() => undefined);
    if (!isSame) throw cut('The file was replaced while it was read.');
    this.#file = file;
    return file;
  }

  #isYoung(facts: TargetFacts): boolean {
    if (this.#reading.ownVersions.isOurs(this.#resource.key, facts)) return false;
    return this.#reading.clock.wallMs() - Number(facts.mtimeNs / 1_000_000n) < STRONG_AFTER_MS;
  }
}

function cut(detail: string): GatewayError {
  return new GatewayError('volume_unavailable', { detail, retryAfterMs: 1_000 });
}

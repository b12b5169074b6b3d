import { createHash, type Hash } from 'node:crypto';
import { constants } from 'node:fs';
import { refuse } from '../domain/errors.ts';
import type { StagedFacts, TargetFacts } from '../domain/file-facts.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Place, Staging } from '../domain/volume.ts';
import { at, type Descriptor } from './descriptor.ts';
import { gatewayErrorOf, mapped } from './errno.ts';
import type { Fence } from './fence.ts';
import { held } from './path-walk.ts';
import { carryOver, inherit, NEW_FILE_MODE } from './rights.ts';
import type { VolumeRoom } from './room.ts';
import type { VersionClock } from './version-clock.ts';

/** What staged files need of their volume. */
export interface StagingRoom {
  readonly room: VolumeRoom;
  readonly versions: VersionClock;
  readonly fence: Fence;
  /** Whether the volume can make a copy that shares its blocks. */
  readonly reflink: boolean;
  /** A name that no file in the incarnation directory ever had. */
  nextName(): string;
  /** Told of a failed sync: its pages are lost and the next sync would claim success (trap F3). */
  onSyncFailed(thrown: unknown): void;
}

export interface StagedOptions {
  /** Digests of what is written: SHA-256, and SHA-512 as well. */
  readonly hash: boolean;
  readonly sha512: boolean;
  /** The mode when nothing is replaced; without it, what the process's umask leaves. */
  readonly newFileMode?: number;
  /** For a file that was made with this much in it. */
  readonly bytesCopied?: number;
}

const CREATE = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** Makes an empty staged file. Rejects with `insufficient_storage`, `volume_unavailable`. */
export async function stageEmpty(staging: StagingRoom, options: StagedOptions): Promise<StagedFile> {
  const { calls, inc, litter } = staging.room;
  const name = staging.nextName();
  const where = at(inc, name);
  return mapped(async () => {
    const make = (): Promise<Descriptor> => calls.open(where, CREATE, NEW_FILE_MODE);
    const file = await litter.making(name, () => calls.unlink(where), make).catch((thrown: unknown) => staging.fence.judge(thrown));
    return new StagedFile(staging, name, file, options);
  });
}

/**
 * A file in the incarnation directory whose name has nothing to do with its target's (trap F21). Memory stays flat: a chunk is written
 * before the next is taken.
 */
export class StagedFile implements Staging {
  readonly name: string;
  readonly #staging: StagingRoom;
  readonly #file: Descriptor;
  readonly #hashes: ReadonlyMap<'sha-256' | 'sha-512', Hash>;
  readonly #newFileMode: number | null;
  readonly #digests = new Map<'sha-256' | 'sha-512', string>();
  #bytesWritten = 0;
  #unsyncedBytes = 0;
  #broken: unknown = null;

  constructor(staging: StagingRoom, name: string, file: Descriptor, options: StagedOptions) {
    this.#staging = staging;
    this.name = name;
    this.#file = file;
    this.#bytesWritten = options.bytesCopied ?? 0;
    this.#newFileMode = options.newFileMode ?? null;
    const algorithms = [...(options.hash ? (['sha-256'] as const) : []), ...(options.hash && options.sha512 ? (['sha-512'] as const) : [])];
    this.#hashes = new Map(algorithms.map((algorithm) => [algorithm, createHash(algorithm.replace('-', ''))]));
  }

  get incarnation(): string {
    return this.#staging.room.incarnation;
  }

  get bytesWritten(): number {
    return this.#bytesWritten;
  }

  async write(chunk: Uint8Array): Promise<void> {
    await this.#guarded(async () => {
      this.observe(chunk);
      await this.#staging.room.calls.writeAll(this.#file, chunk, this.#bytesWritten);
      this.#bytesWritten += chunk.byteLength;
      this.#unsyncedBytes += chunk.byteLength;
      if (this.#unsyncedBytes >= LIMITS.stagedSyncEveryBytes) await this.#fsync();
    });
  }

  /** Over bytes that are there already; not hashed, see `observe`. */
  async writeAt(chunk: Uint8Array, position: number): Promise<void> {
    await this.#guarded(async () => {
      await this.#staging.room.calls.writeAll(this.#file, chunk, position);
      this.#bytesWritten = Math.max(this.#bytesWritten, position + chunk.byteLength);
    });
  }

  /** Adds bytes to the digests; they must come in order. */
  observe(chunk: Uint8Array): void {
    if (this.#digests.size > 0) throw new Error('bytes were added to a staged file after its digest was taken');
    for (const hash of this.#hashes.values()) hash.update(chunk);
  }

  /** Bytes of the staged file itself; 0 at its end. */
  readAt(into: Uint8Array, position: number): Promise<number> {
    return this.#staging.room.calls.read(this.#file, into, position);
  }

  digest(algorithm: 'sha-256' | 'sha-512'): string {
    const known = this.#digests.get(algorithm);
    if (known !== undefined) return known;
    const hash = this.#hashes.get(algorithm);
    if (hash === undefined) throw new Error(`a staged file was asked for a digest that it was not told to make: ${algorithm}`);
    const digest = hash.digest('hex');
    this.#digests.set(algorithm, digest);
    return digest;
  }

  async seal(replaces: TargetFacts | null, place: Place): Promise<StagedFacts> {
    return this.#guarded(async () => {
      const { calls } = this.#staging.room;
      if (replaces === null) await inherit(calls, this.#file, held(place).deepest, this.#newFileMode);
      else await carryOver(calls, this.#file, replaces, held(place).at);
      const { ino, size, mtimeNs } = await this.#staging.versions.stamped(this.#file, replaces?.mtimeNs ?? null);
      if (Number(size) !== this.#bytesWritten) await this.#notAllThere();
      return { name: this.name, ino, sizeBytes: this.#bytesWritten, mtimeNs, sha256: this.#hashes.has('sha-256') ? this.digest('sha-256') : '' };
    });
  }

  async sync(): Promise<void> {
    await this.#guarded(async () => {
      await this.#fsync();
      // NFS reports a full disk or a quota only here (trap F4); a close is never retried (trap F5).
      await this.#staging.room.calls.close(this.#file);
    });
  }

  async discard(): Promise<void> {
    const { calls, inc, litter } = this.#staging.room;
    // Both are best effort: what is left has no intent and is swept at the next start.
    await this.#drop();
    await litter.remove(this.name, () => calls.unlink(at(inc, this.name)));
  }

  /** A name that is missing was taken by a successor, who may still publish it: only our own unlink counts. */
  async discardForGood(): Promise<boolean> {
    const { calls, inc, sync } = this.#staging.room;
    await this.#drop();
    try {
      await calls.unlink(at(inc, this.name));
      await sync.sync(inc);
      return true;
    } catch {
      return false;
    }
  }

  async #drop(): Promise<void> {
    this.#broken ??= refuse('internal', 'The staged file was dropped.');
    await this.#staging.room.calls.close(this.#file).catch(() => undefined);
  }

  /** After one failure the file is never used again: what a failed write or sync left in it is not known. */
  async #guarded<T>(work: () => Promise<T>): Promise<T> {
    if (this.#broken !== null) throw gatewayErrorOf(this.#broken);
    try {
      return await work().catch((thrown: unknown) => this.#staging.fence.judge(thrown));
    } catch (thrown) {
      this.#broken = thrown;
      throw gatewayErrorOf(thrown);
    }
  }

  async #fsync(): Promise<void> {
    try {
      await this.#staging.room.calls.fsync(this.#file);
      this.#unsyncedBytes = 0;
    } catch (thrown) {
      this.#staging.onSyncFailed(thrown);
      throw thrown;
    }
  }

  /** On NFS every write may have succeeded although the disk is full: only the sync tells why bytes are missing (traps F4, X8). */
  async #notAllThere(): Promise<never> {
    await this.#fsync();
    throw refuse('volume_unavailable', 'The volume does not hold all bytes that were staged.');
  }
}

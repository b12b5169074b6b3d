import * as fs from 'node:fs';
import { LIMITS } from '../domain/limits.ts';
import { type At, Descriptor, procPath } from './descriptor.ts';
import { LaneError } from './errno.ts';
import type { Lane } from './lane.ts';
import { pool } from './pool-calls.ts';

/**
 * Every system call of this room, as promises, so that all other code is written once. The one switch: on a volume that is known
 * to be local, short calls are made at once on the caller's thread (a few microseconds; a trip through the thread pool costs more
 * than the call), and only what waits for the disk goes to the pool. On a network or unknown file system every call may hang, so
 * every call goes through the volume's lane to the pool.
 *
 * Rejects with the plain system error, or with a `LaneError`. Names are reached through their held parent (`descriptor.ts`).
 */
export interface FileCalls {
  readonly local: boolean;
  /** An absolute path, at start: the root of a volume. */
  openPath(path: string, flags: number): Promise<Descriptor>;
  open(at: At, flags: number, mode?: number): Promise<Descriptor>;
  /** Opens the same directory again, through its descriptor: on a network mount this asks the server. */
  reopen(directory: Descriptor): Promise<Descriptor>;
  /** Rejects with the error of `close`, which is never retried (traps F4, F5); closing twice is a no-op. */
  close(descriptor: Descriptor): Promise<void>;
  fstat(descriptor: Descriptor): Promise<fs.BigIntStats>;
  lstat(at: At): Promise<fs.BigIntStats>;
  statfs(directory: Descriptor): Promise<fs.BigIntStatsFs>;
  /** One `pread`; 0 at the end of the file. */
  read(descriptor: Descriptor, into: Uint8Array, position: number): Promise<number>;
  /** `pwrite` at an explicit offset until all is written; never `O_APPEND` (trap F6). */
  writeAll(descriptor: Descriptor, bytes: Uint8Array, position: number): Promise<void>;
  fsync(descriptor: Descriptor): Promise<void>;
  ftruncate(descriptor: Descriptor, sizeBytes: number): Promise<void>;
  fchmod(descriptor: Descriptor, mode: number): Promise<void>;
  fchown(descriptor: Descriptor, uid: number, gid: number): Promise<void>;
  /** Sets the mtime in whole microseconds; the caller reads it back. */
  setMtime(descriptor: Descriptor, mtimeNs: bigint): Promise<void>;
  rename(from: At, to: At): Promise<void>;
  link(existing: At, made: At): Promise<void>;
  unlink(at: At): Promise<void>;
  mkdir(at: At, mode?: number): Promise<void>;
  rmdir(at: At): Promise<void>;
  /** A copy that shares its blocks, made as a new file; rejects where there is no such thing. */
  reflink(from: Descriptor, to: At): Promise<void>;
  openDirectory(directory: Descriptor): Promise<fs.Dir>;
  readDirectory(open: fs.Dir): Promise<Buffer | null>;
  /** The names of a small directory. Rejects with `RangeError` above `max`. */
  names(directory: Descriptor, max: number): Promise<Buffer[]>;
}

/** Sent to the pool from this size on also on a local volume: below, the copy into the page cache is shorter than the trip. */
const SHORT_WRITE_BYTES = 65_536;

/**
 * The seconds that Node's `futimes` must be given for this time: it takes a double and cuts to microseconds, and a double near
 * today's date is coarser than that, so a third of a microsecond is added against being cut one too low.
 */
function futimesSeconds(mtimeNs: bigint): number {
  return Number(mtimeNs / 1000n) / 1e6 + 3e-7;
}

// `Dir` yields Buffers when asked to (trap F22); the type of the option does not know it.
const AS_BUFFERS = { encoding: 'buffer', bufferSize: 512 } as unknown as fs.OpenDirOptions;
const procFd = (descriptor: Descriptor): string => `/proc/self/fd/${descriptor.fd}`;

class Calls implements FileCalls {
  readonly local: boolean;
  readonly #lane: Lane;
  readonly #unclosed: number[] = [];

  constructor(local: boolean, lane: Lane) {
    this.local = local;
    this.#lane = lane;
  }

  /** A call that is short on a local disk. */
  async #short<T>(uses: readonly Descriptor[], now: () => T, pooled: () => Promise<T>, late?: (value: T) => void): Promise<T> {
    if (!this.local) return this.#pooled(uses, pooled, late);
    for (const used of uses) if (used.closed) throw new Error('a descriptor was used after it was closed');
    return now();
  }

  /** A call that waits for a disk or a server. Its descriptors are in use until it has really ended. */
  #pooled<T>(uses: readonly Descriptor[], pooled: () => Promise<T>, late?: (value: T) => void, deadlineMs?: number): Promise<T> {
    if (this.#unclosed.length > 0 && this.#lane.breaker === 'closed') this.#closeLeft();
    const held = async (): Promise<T> => {
      for (const used of uses) used.enter();
      try {
        return await pooled();
      } finally {
        for (const used of uses) used.leave();
      }
    };
    return this.#lane.run(held, late, deadlineMs);
  }

  #open(uses: readonly Descriptor[], path: string | Buffer, flags: number, mode?: number): Promise<Descriptor> {
    return this.#short(
      uses,
      () => new Descriptor(fs.openSync(path, flags, mode)),
      async () => new Descriptor(await pool.open(path, flags, mode)),
      (late) => void late.end(() => fs.close(late.fd, () => undefined)),
    );
  }

  openPath(path: string, flags: number): Promise<Descriptor> {
    return this.#open([], path, flags);
  }

  open(at: At, flags: number, mode?: number): Promise<Descriptor> {
    return this.#open([at.dir], procPath(at), flags, mode);
  }

  reopen(directory: Descriptor): Promise<Descriptor> {
    return this.#open([directory], procFd(directory), fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
  }

  async close(descriptor: Descriptor): Promise<void> {
    if (descriptor.busy) {
      descriptor.end(() => fs.close(descriptor.fd, () => undefined));
      return;
    }
    let idle = false;
    if (
      !descriptor.end(() => {
        idle = true;
      }) ||
      !idle
    )
      return;
    if (this.local) fs.closeSync(descriptor.fd);
    else await this.#closePooled(descriptor.fd);
  }

  async #closePooled(fd: number): Promise<void> {
    try {
      await this.#lane.run(() => pool.close(fd));
    } catch (thrown) {
      if (thrown instanceof LaneError && !thrown.started) this.#unclosed.push(fd);
      throw thrown;
    }
  }

  /** What could not be closed while the volume did not answer is closed once it does. */
  #closeLeft(): void {
    // A close that fails is not repeated (trap F5); one that was not let through is on the list again.
    for (const fd of this.#unclosed.splice(0)) this.#closePooled(fd).catch(() => undefined);
  }

  fstat(descriptor: Descriptor): Promise<fs.BigIntStats> {
    return this.#short(
      [descriptor],
      () => fs.fstatSync(descriptor.fd, { bigint: true }),
      () => pool.fstat(descriptor.fd, { bigint: true }),
    );
  }

  lstat(at: At): Promise<fs.BigIntStats> {
    const path = procPath(at);
    return this.#short(
      [at.dir],
      () => fs.lstatSync(path, { bigint: true }),
      () => pool.lstat(path, { bigint: true }),
    );
  }

  statfs(directory: Descriptor): Promise<fs.BigIntStatsFs> {
    return this.#short(
      [directory],
      () => fs.statfsSync(procFd(directory), { bigint: true }),
      () => pool.statfs(procFd(directory), { bigint: true }),
    );
  }

  read(descriptor: Descriptor, into: Uint8Array, position: number): Promise<number> {
    return this.#pooled([descriptor], () => pool.read(descriptor.fd, into, position));
  }

  async writeAll(descriptor: Descriptor, bytes: Uint8Array, position: number): Promise<void> {
    const isShort = this.local && bytes.byteLength <= SHORT_WRITE_BYTES;
    for (let done = 0; done < bytes.byteLength; ) {
      const rest = done === 0 ? bytes : bytes.subarray(done);
      const count = await (isShort
        ? this.#short(
            [descriptor],
            () => fs.writeSync(descriptor.fd, rest, 0, rest.byteLength, position + done),
            () => pool.write(descriptor.fd, rest, position + done),
          )
        : this.#pooled([descriptor], () => pool.write(descriptor.fd, rest, position + done)));
      // A write of nothing without an error would loop for ever.
      if (count === 0) throw Object.assign(new Error('the volume took no byte of a write'), { code: 'EIO' });
      done += count;
    }
  }

  fsync(descriptor: Descriptor): Promise<void> {
    return this.#pooled(
      [descriptor],
      () => pool.fsync(descriptor.fd),
      undefined,
      this.local ? LIMITS.volumeSyncDeadlineMs : LIMITS.volumeCallDeadlineMs,
    );
  }

  ftruncate(descriptor: Descriptor, sizeBytes: number): Promise<void> {
    return this.#pooled([descriptor], () => pool.ftruncate(descriptor.fd, sizeBytes));
  }

  fchmod(descriptor: Descriptor, mode: number): Promise<void> {
    return this.#short(
      [descriptor],
      () => fs.fchmodSync(descriptor.fd, mode),
      () => pool.fchmod(descriptor.fd, mode),
    );
  }

  fchown(descriptor: Descriptor, uid: number, gid: number): Promise<void> {
    return this.#short(
      [descriptor],
      () => fs.fchownSync(descriptor.fd, uid, gid),
      () => pool.fchown(descriptor.fd, uid, gid),
    );
  }

  setMtime(descriptor: Descriptor, mtimeNs: bigint): Promise<void> {
    const seconds = futimesSeconds(mtimeNs);
    return this.#short(
      [descriptor],
      () => fs.futimesSync(descriptor.fd, seconds, seconds),
      () => pool.futimes(descriptor.fd, seconds, seconds),
    );
  }

  rename(from: At, to: At): Promise<void> {
    const [a, b] = [procPath(from), procPath(to)];
    return this.#short(
      [from.dir, to.dir],
      () => fs.renameSync(a, b),
      () => pool.rename(a, b),
    );
  }

  link(existing: At, made: At): Promise<void> {
    const [a, b] = [procPath(existing), procPath(made)];
    return this.#short(
      [existing.dir, made.dir],
      () => fs.linkSync(a, b),
      () => pool.link(a, b),
    );
  }

  unlink(at: At): Promise<void> {
    const path = procPath(at);
    return this.#short(
      [at.dir],
      () => fs.unlinkSync(path),
      () => pool.unlink(path),
    );
  }

  mkdir(at: At, mode = 0o777): Promise<void> {
    const path = procPath(at);
    return this.#short(
      [at.dir],
      () => void fs.mkdirSync(path, mode),
      () => pool.mkdir(path, mode),
    );
  }

  rmdir(at: At): Promise<void> {
    const path = procPath(at);
    return this.#short(
      [at.dir],
      () => fs.rmdirSync(path),
      () => pool.rmdir(path),
    );
  }

  reflink(from: Descriptor, to: At): Promise<void> {
    const { COPYFILE_EXCL, COPYFILE_FICLONE_FORCE } = fs.constants;
    return this.#pooled([from, to.dir], () => pool.copyFile(procFd(from), procPath(to), COPYFILE_EXCL | COPYFILE_FICLONE_FORCE));
  }

  openDirectory(directory: Descriptor): Promise<fs.Dir> {
    return this.#short(
      [directory],
      () => fs.opendirSync(procFd(directory), AS_BUFFERS),
      () => pool.opendir(procFd(directory), AS_BUFFERS),
      (late) => void late.close().catch(() => undefined),
    );
  }

  async readDirectory(open: fs.Dir): Promise<Buffer | null> {
    const entry = this.local ? open.readSync() : await this.#lane.run(() => open.read());
    return entry === null ? null : (entry.name as unknown as Buffer);
  }

  async names(directory: Descriptor, max: number): Promise<Buffer[]> {
    const open = await this.openDirectory(directory);
    try {
      const names: Buffer[] = [];
      for (let name = await this.readDirectory(open); name !== null; name = await this.readDirectory(open)) {
        if (names.length >= max) throw new RangeError(`a directory has more than ${max} entries`);
        names.push(name);
      }
      return names;
    } finally {
      await open.close().catch(() => undefined);
    }
  }
}

/** The calls of one volume; `local` only for file systems that are known to be on this machine's disks (`file-system.ts`). */
export function fileCalls(local: boolean, lane: Lane): FileCalls {
  return new Calls(local, lane);
}

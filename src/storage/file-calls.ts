import * as fs from 'node:fs';
import type { AttributeCall, AttributeCalls } from './attribute-calls.ts';
import type { AttributeJob } from './attribute-jobs.ts';
import { CallRoute } from './call-route.ts';
import { type At, Descriptor, procFd, procPath } from './descriptor.ts';
import { errnoOf, LaneError } from './errno.ts';
import type { Lane } from './lane.ts';
import { pool, removedWhenLate } from './pool-calls.ts';

/**
 * Every system call of this room, as promises, so that all other code is written once; `call-route.ts` decides where each is made.
 * Rejects with the plain system error, or with a `LaneError`. Names are reached through their held parent (`descriptor.ts`).
 */
export interface FileCalls {
  readonly local: boolean;
  /** False where the volume is told to drop attributes, and where the library for them is not installed: then the three calls below do nothing. */
  readonly keepsAttributes: boolean;
  /** A directory of the gateway's own, at which the volume is touched from now on to see whether it answers. */
  touchAt(directory: Descriptor): void;
  /** An absolute path, at start: the root of a volume. */
  openPath(path: string, flags: number): Promise<Descriptor>;
  open(at: At, flags: number, mode?: number): Promise<Descriptor>;
  /** Opens the same directory again, through its descriptor: on a network mount this asks the server. */
  reopen(directory: Descriptor): Promise<Descriptor>;
  /** Rejects with the error of `close`, which is never retried (traps F4, F5); closing twice is a no-op. */
  close(descriptor: Descriptor): Promise<void>;
  fstat(descriptor: Descriptor): Promise<fs.BigIntStats>;
  lstat(at: At): Promise<fs.BigIntStats>;
  /** An absolute path, links followed. Always in the pool: what is there now may be another mount than the volume, and hang. */
  statPath(path: string): Promise<fs.BigIntStats>;
  /** False when the mount that the directory was opened on takes no writes; a missing permission is not what is asked. */
  isWritable(directory: Descriptor): Promise<boolean>;
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
  /** Gives `to` the extended attributes of `from`, ACL and label among them, as far as the gateway may. */
  carryAttributes(from: Descriptor, to: Descriptor): Promise<void>;
  /** Gives `file` the ACL that the kernel gives to a file which is made in `directory` with `mode`. */
  inheritAcl(directory: Descriptor, file: Descriptor, mode: number): Promise<void>;
  /** From now on files that are made in `directory` get no ACL from it. */
  passNothingOn(directory: Descriptor): Promise<void>;
  rename(from: At, to: At): Promise<void>;
  link(existing: At, made: At): Promise<void>;
  unlink(at: At): Promise<void>;
  mkdir(at: At, mode?: number): Promise<void>;
  /** Under a name that is nobody else's. What comes to be after its caller was told that it failed is removed again. */
  mkdirOwn(at: At, mode: number): Promise<void>;
  rmdir(at: At): Promise<void>;
  /** A copy that shares its blocks, made as a new file; rejects where there is no such thing. */
  reflink(from: Descriptor, to: At): Promise<void>;
  openDirectory(directory: Descriptor): Promise<fs.Dir>;
  readDirectory(open: fs.Dir): Promise<Buffer | null>;
  /** The names of a small directory. Rejects with `RangeError` above `max`. */
  names(directory: Descriptor, max: number): Promise<Buffer[]>;
}

/** A file that is opened so may be changed; on a frozen file system the opening itself waits. */
const MAY_CHANGE = fs.constants.O_WRONLY | fs.constants.O_RDWR | fs.constants.O_CREAT | fs.constants.O_TRUNC;

/**
 * The seconds that Node's `futimes` must be given for this time: it takes a double and cuts to microseconds, and a double near
 * today's date is coarser than that, so a third of a microsecond is added against being cut one too low.
 */
function futimesSeconds(mtimeNs: bigint): number {
  return Number(mtimeNs / 1000n) / 1e6 + 3e-7;
}

// `Dir` yields Buffers when asked to (trap F22); the type of the option does not know it.
const AS_BUFFERS = { encoding: 'buffer', bufferSize: 512 } as unknown as fs.OpenDirOptions;

class Calls implements FileCalls {
  readonly local: boolean;
  readonly keepsAttributes: boolean;
  readonly #route: CallRoute;
  readonly #attributes: AttributeCalls | null;

  constructor(route: CallRoute, attributes: AttributeCalls | null) {
    this.local = route.local;
    this.keepsAttributes = attributes !== null;
    this.#route = route;
    this.#attributes = attributes;
  }

  #open(uses: readonly Descriptor[], path: string | Buffer, flags: number, mode?: number): Promise<Descriptor> {
    const opened = async (): Promise<Descriptor> => new Descriptor(await pool.open(path, flags, mode));
    const late = (descriptor: Descriptor): void => void descriptor.end(() => fs.close(descriptor.fd, () => undefined));
    if ((flags & MAY_CHANGE) !== 0) return this.#route.change(uses, opened, { late });
    return this.#route.look(uses, () => new Descriptor(fs.openSync(path, flags, mode)), opened, late);
  }

  touchAt(directory: Descriptor): void {
    this.#route.touchAt(directory);
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

  close(descriptor: Descriptor): Promise<void> {
    return this.#route.close(descriptor);
  }

  fstat(descriptor: Descriptor): Promise<fs.BigIntStats> {
    return this.#route.lookAtHeld(
      [descriptor],
      () => fs.fstatSync(descriptor.fd, { bigint: true }),
      () => pool.fstat(descriptor.fd, { bigint: true }),
    );
  }

  lstat(at: At): Promise<fs.BigIntStats> {
    const path = procPath(at);
    return this.#route.look(
      [at.dir],
      () => fs.lstatSync(path, { bigint: true }),
      () => pool.lstat(path, { bigint: true }),
    );
  }

  statPath(path: string): Promise<fs.BigIntStats> {
    return this.#route.pooled([], () => pool.stat(path, { bigint: true }));
  }

  async isWritable(directory: Descriptor): Promise<boolean> {
    try {
      await this.#route.pooled([directory], () => pool.access(procFd(directory), fs.constants.W_OK));
      return true;
    } catch (thrown) {
      const errno = errnoOf(thrown);
      if (errno === null) throw thrown;
      return errno !== 'EROFS';
    }
  }

  statfs(directory: Descriptor): Promise<fs.BigIntStatsFs> {
    return this.#route.pooled([directory], () => pool.statfs(procFd(directory), { bigint: true }));
  }

  read(descriptor: Descriptor, into: Uint8Array, position: number): Promise<number> {
    return this.#route.pooled([descriptor], () => pool.read(descriptor.fd, into, position));
  }

  async writeAll(descriptor: Descriptor, bytes: Uint8Array, position: number): Promise<void> {
    for (let done = 0; done < bytes.byteLength; ) {
      const rest = done === 0 ? bytes : bytes.subarray(done);
      const count = await this.#route.change([descriptor], () => pool.write(descriptor.fd, rest, position + done));
      // A write of nothing without an error would loop for ever.
      if (count === 0) throw Object.assign(new Error('the volume took no byte of a write'), { code: 'EIO' });
      done += count;
    }
  }

  fsync(descriptor: Descriptor): Promise<void> {
    return this.#route.change([descriptor], () => pool.fsync(descriptor.fd));
  }

  ftruncate(descriptor: Descriptor, sizeBytes: number): Promise<void> {
    return this.#route.change([descriptor], () => pool.ftruncate(descriptor.fd, sizeBytes));
  }

  fchmod(descriptor: Descriptor, mode: number): Promise<void> {
    return this.#route.change([descriptor], () => pool.fchmod(descriptor.fd, mode));
  }

  fchown(descriptor: Descriptor, uid: number, gid: number): Promise<void> {
    return this.#route.change([descriptor], () => pool.fchown(descriptor.fd, uid, gid));
  }

  setMtime(descriptor: Descriptor, mtimeNs: bigint): Promise<void> {
    const seconds = futimesSeconds(mtimeNs);
    return this.#route.change([descriptor], () => pool.futimes(descriptor.fd, seconds, seconds));
  }

  carryAttributes(from: Descriptor, to: Descriptor): Promise<void> {
    return this.#inThread([from, to], { kind: 'carry', from: procFd(from), to: procFd(to) });
  }

  inheritAcl(directory: Descriptor, file: Descriptor, mode: number): Promise<void> {
    return this.#inThread([directory, file], { kind: 'inherit', directory: procFd(directory), file: procFd(file), mode });
  }

  passNothingOn(directory: Descriptor): Promise<void> {
    return this.#inThread([directory], { kind: 'pass_nothing_on', directory: procFd(directory) });
  }

  /**
   * What is to be done is a look, made as other looks are; what is done is a change. As in the pool the descriptors stay open until the thread has really let go of them, so no number
   * in its hands is ever another file's.
   */
  async #inThread(uses: readonly Descriptor[], job: AttributeJob): Promise<void> {
    const attributes = this.#attributes;
    if (attributes === null) return;
    const always = (): Promise<boolean> => Promise.resolve(true);
    if (this.local && !(await this.#route.look(uses, () => attributes.isNeeded(job), always))) return;
    const begun: AttributeCall[] = [];
    const call = (): Promise<void> => {
      const made = attributes.begin(job);
      begun.push(made);
      return made.done;
    };
    try {
      await this.#route.change(uses, call);
    } catch (thrown) {
      if (thrown instanceof LaneError) for (const made of begun) made.abandon();
      throw thrown;
    }
  }

  rename(from: At, to: At): Promise<void> {
    const [a, b] = [procPath(from), procPath(to)];
    return this.#route.change([from.dir, to.dir], () => pool.rename(a, b));
  }

  link(existing: At, made: At): Promise<void> {
    const [a, b] = [procPath(existing), procPath(made)];
    return this.#route.change([existing.dir, made.dir], () => pool.link(a, b));
  }

  unlink(at: At): Promise<void> {
    const path = procPath(at);
    return this.#route.change([at.dir], () => pool.unlink(path));
  }

  mkdir(at: At, mode = 0o777): Promise<void> {
    const path = procPath(at);
    return this.#route.change([at.dir], () => pool.mkdir(path, mode));
  }

  mkdirOwn(at: At, mode: number): Promise<void> {
    const { make, giveUp } = removedWhenLate(procPath(at), mode);
    return this.#route.change([at.dir], make).catch(giveUp);
  }

  rmdir(at: At): Promise<void> {
    const path = procPath(at);
    return this.#route.change([at.dir], () => pool.rmdir(path));
  }

  reflink(from: Descriptor, to: At): Promise<void> {
    const { COPYFILE_EXCL, COPYFILE_FICLONE_FORCE } = fs.constants;
    return this.#route.change([from, to.dir], () => pool.copyFile(procFd(from), procPath(to), COPYFILE_EXCL | COPYFILE_FICLONE_FORCE));
  }

  openDirectory(directory: Descriptor): Promise<fs.Dir> {
    return this.#route.look(
      [directory],
      () => fs.opendirSync(procFd(directory), AS_BUFFERS),
      () => pool.opendir(procFd(directory), AS_BUFFERS),
      (late) => void late.close().catch(() => undefined),
    );
  }

  async readDirectory(open: fs.Dir): Promise<Buffer | null> {
    const entry = await this.#route.look(
      [],
      () => open.readSync(),
      () => open.read(),
    );
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
export function fileCalls(local: boolean, lane: Lane, attributes: AttributeCalls | null): FileCalls {
  return new Calls(new CallRoute(local, lane), attributes);
}

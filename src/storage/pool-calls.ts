import * as fs from 'node:fs';
import { promisify } from 'node:util';

/** Node's calls that run in the thread pool, on descriptor numbers and with exact numbers; declared once, as narrow as they are used. */
export const pool = {
  open: promisify(fs.open) as (path: fs.PathLike, flags: number, mode?: number) => Promise<number>,
  close: promisify(fs.close),
  fstat: promisify(fs.fstat) as unknown as (fd: number, options: { bigint: true }) => Promise<fs.BigIntStats>,
  lstat: promisify(fs.lstat) as unknown as (path: fs.PathLike, options: { bigint: true }) => Promise<fs.BigIntStats>,
  stat: promisify(fs.stat) as unknown as (path: fs.PathLike, options: { bigint: true }) => Promise<fs.BigIntStats>,
  access: promisify(fs.access) as (path: fs.PathLike, mode: number) => Promise<void>,
  statfs: promisify(fs.statfs) as unknown as (path: fs.PathLike, options: { bigint: true }) => Promise<fs.BigIntStatsFs>,
  fsync: promisify(fs.fsync),
  ftruncate: promisify(fs.ftruncate),
  fchmod: promisify(fs.fchmod),
  fchown: promisify(fs.fchown),
  futimes: promisify(fs.futimes),
  rename: promisify(fs.rename),
  link: promisify(fs.link),
  unlink: promisify(fs.unlink),
  mkdir: promisify(fs.mkdir) as (path: fs.PathLike, mode?: number) => Promise<void>,
  rmdir: promisify(fs.rmdir) as (path: fs.PathLike) => Promise<void>,
  copyFile: promisify(fs.copyFile),
  opendir: promisify(fs.opendir) as (path: fs.PathLike, options: fs.OpenDirOptions) => Promise<fs.Dir>,
  read: (fd: number, into: Uint8Array, position: number) =>
    new Promise<number>((resolve, reject) =>
      fs.read(fd, into, 0, into.byteLength, position, (error, count) => (error === null ? resolve(count) : reject(error))),
    ),
  write: (fd: number, bytes: Uint8Array, position: number) =>
    new Promise<number>((resolve, reject) =>
      fs.write(fd, bytes, 0, bytes.byteLength, position, (error, count) => (error === null ? resolve(count) : reject(error))),
    ),
};

/** A directory whose caller may give it up before the call has come back: it is removed then, in the same call, for no longer is its parent held open. */
export function removedWhenLate(
  path: fs.PathLike,
  mode: number,
): { readonly make: () => Promise<void>; readonly giveUp: (thrown: unknown) => never } {
  let givenUp = false;
  return {
    make: async () => {
      await pool.mkdir(path, mode);
      if (givenUp) await pool.rmdir(path);
    },
    giveUp: (thrown) => {
      givenUp = true;
      throw thrown;
    },
  };
}

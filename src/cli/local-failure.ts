import { printable } from './printable.ts';

/** What the system says about a file or directory of this machine: in words, and what to do next. */
const BY_CODE: Readonly<Record<string, readonly [says: string, next: string]>> = {
  ENOENT: ['no such file or directory', 'name one that is there; a path is taken from the present directory'],
  ENOTDIR: ['a part of the path is no directory', 'name a path whose directories are there'],
  EISDIR: ['is a directory', 'name a file'],
  EACCES: ['no right to it', 'let somebody run this who has the right, or have it given'],
  EPERM: ['not allowed', 'let somebody run this who has the right, or have it given'],
  EROFS: ['its file system can only be read', 'name a place that can be written'],
  ENOSPC: ['no room left', 'make room, or name another place'],
  EDQUOT: ['the quota is used up', 'make room, or name another place'],
  EIO: ['its device, or the terminal, does not work', 'look what the system says of it'],
  ENAMETOOLONG: ['its name is too long', 'name a shorter one'],
};

/** What an error of the system says in words; `null` where there are none for it. */
export function saysOf({ code }: NodeJS.ErrnoException): string | null {
  const [says] = BY_CODE[String(code)] ?? [];
  return says === undefined ? null : `${says} (${code})`;
}

/** Lines for people; `null` for what is no error of the system. */
export function localFailure(thrown: unknown): string[] | null {
  if (!(thrown instanceof Error && 'code' in thrown && 'syscall' in thrown)) return null;
  const path = 'path' in thrown && typeof thrown.path === 'string' ? thrown.path : null;
  const [says, next] = BY_CODE[String(thrown.code)] ?? [null, null];
  if (path === null || says === null) return [printable(thrown.message)];
  return [printable(`${path}: ${says} (${thrown.code})`), `next: ${next}`];
}

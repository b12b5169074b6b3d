import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** What tells one process from every other: a pid alone comes back after a while, or means somebody else in another namespace. */
export interface ProcessIdentity {
  readonly host: string;
  readonly pid: number;
  /** Field 22 of `/proc/<pid>/stat`: clock ticks after boot. */
  readonly startTime: string;
  readonly bootId: string;
  readonly pidNamespace: string;
}

/** Field 3 (state) and 22 (start time) of the text of `/proc/<pid>/stat`; the name in field 2 may contain anything. */
export function readStat(text: string): { readonly state: string; readonly startTime: string } | undefined {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const state = fields[0];
  const startTime = fields[19];
  return state === undefined || startTime === undefined ? undefined : { state, startTime };
}

function statOf(pid: number | 'self'): { readonly state: string; readonly startTime: string } | undefined {
  try {
    return readStat(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch (thrown) {
    if (thrown instanceof Error && 'code' in thrown && (thrown.code === 'ENOENT' || thrown.code === 'ESRCH')) return undefined;
    throw thrown;
  }
}

export function ownIdentity(): ProcessIdentity {
  const stat = statOf('self');
  if (stat === undefined) throw new Error('the process cannot see itself under /proc');
  return {
    host: hostname(),
    pid: process.pid,
    startTime: stat.startTime,
    bootId: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
    pidNamespace: readlinkSync('/proc/self/ns/pid'),
  };
}

/**
 * True when no thread of that process can make a system call any more. A leader that is a zombie proves nothing while another
 * of its threads hangs in the kernel, so its tasks are counted.
 */
export function isProcessGone(pid: number, startTime: string): boolean {
  const stat = statOf(pid);
  if (stat === undefined || stat.startTime !== startTime) return true;
  if (stat.state !== 'Z' && stat.state !== 'X') return false;
  try {
    return readdirSync(`/proc/${pid}/task`).length <= 1;
  } catch {
    return statOf(pid)?.startTime !== startTime;
  }
}

/** Ends the process, comparing pid and start time again at the last moment. Failing to is not an error: the fence holds without it. */
export function endProcess(pid: number, startTime: string): void {
  if (isProcessGone(pid, startTime)) return;
  try {
    process.kill(pid, 'SIGKILL');
  } catch (thrown) {
    if (!(thrown instanceof Error && 'code' in thrown && (thrown.code === 'ESRCH' || thrown.code === 'EPERM'))) throw thrown;
  }
}

/** Milliseconds since boot, one clock for all processes of this machine (unlike the wall clock it never jumps). */
export function machineMonotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

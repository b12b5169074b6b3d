import type { LeaseMode } from '../../domain/lease.ts';
import type { ZkStat } from './zk-client.ts';

/**
 * The data of a resource's node: who holds it. Exclusion rests on this node alone, changed only by version-checked `set` (R1).
 * A number that only the `set` itself makes (its mzxid, its mtime) cannot be inside it: it is written as null, means "of this
 * version", and the next `set` writes it in.
 */
export interface HolderEntry {
  readonly lease: string;
  /** Its child. */
  readonly node: string;
  readonly mode: LeaseMode;
  /** The mzxid of its grant, without the coordinator's base. */
  readonly token: bigint;
  /** The session through which it was granted. */
  readonly home: string;
  readonly lockDelayMs: number;
}

/** A lease that an administrator breaks, with the time that it has left. While one of them holds, nobody new is granted. */
export interface BreakEntry {
  readonly lease: string;
  /** For people, by the wall clock of whoever was asked; its home ends it by its own. */
  readonly untilMs: number;
}

export interface NodeState {
  readonly holders: readonly HolderEntry[];
  /** The lease of the holder that asks to become exclusive. */
  readonly upgrade: string | null;
  /** Nobody is granted for this long after an unclean end. */
  readonly delay: { readonly ms: number; readonly untilMs: number } | null;
  readonly breaks: readonly BreakEntry[];
  /** For people: whether its own gateway took the last holder out, or somebody found it without its child; `null`: nobody ever held. */
  readonly clean: boolean | null;
}

/** A holder or delay whose number this very `set` makes. */
export type NextState = {
  readonly holders: readonly (Omit<HolderEntry, 'token'> & { readonly token: bigint | null })[];
  readonly upgrade: string | null;
  readonly delay: { readonly ms: number; readonly untilMs: number | null } | null;
  readonly breaks: readonly BreakEntry[];
  readonly clean: boolean | null;
};

/** What the node has at one version of it. */
export interface Versioned {
  readonly state: NodeState;
  readonly version: number;
}

export const FREE: NodeState = { holders: [], upgrade: null, delay: null, breaks: [], clean: null };

/** Nobody holds, nor is held back. */
export function isFree({ holders, upgrade, delay, breaks }: NextState): boolean {
  return holders.length === 0 && upgrade === null && delay === null && breaks.length === 0;
}

export function encodeState({ holders, upgrade, delay, breaks, clean }: NextState): Uint8Array {
  return Buffer.from(
    JSON.stringify({
      v: 1,
      holders: holders.map(({ lease, node, mode, token, home, lockDelayMs }) => ({
        lease,
        node,
        mode,
        token: token === null ? null : token.toString(),
        home,
        lock_delay_ms: lockDelayMs,
      })),
      upgrade,
      break: breaks.map(({ lease, untilMs }) => ({ lease, until: untilMs })),
      delay_ms: delay?.ms ?? null,
      delay_until: delay?.untilMs ?? null,
      clean,
    }),
  );
}

/** Throws `RangeError` for what no version of ours wrote: then nobody is granted (fail closed). Empty: made by somebody else, free. */
export function decodeState(data: Uint8Array, stat: Pick<ZkStat, 'mzxid' | 'mtimeMs'>): NodeState {
  if (data.byteLength === 0) return FREE;
  const { v, holders, upgrade, break: breaks, delay_ms: delayMs, delay_until: until, clean } = parsed(data);
  if (v !== 1 || !Array.isArray(holders) || !Array.isArray(breaks)) throw unreadable();
  if (delayMs !== null && typeof delayMs !== 'number') throw unreadable();
  return {
    holders: holders.map((entry: unknown) => holderOf(entry, stat.mzxid)),
    upgrade: typeof upgrade === 'string' ? upgrade : null,
    delay: delayMs === null ? null : { ms: delayMs, untilMs: typeof until === 'number' ? until : stat.mtimeMs + delayMs },
    breaks: breaks.map(breakOf),
    clean: typeof clean === 'boolean' ? clean : null,
  };
}

interface Written {
  readonly v?: unknown;
  readonly holders?: unknown;
  readonly upgrade?: unknown;
  readonly delay_ms?: unknown;
  readonly delay_until?: unknown;
  readonly break?: unknown;
  readonly until?: unknown;
  readonly clean?: unknown;
  readonly lease?: unknown;
  readonly node?: unknown;
  readonly mode?: unknown;
  readonly token?: unknown;
  readonly home?: unknown;
  readonly lock_delay_ms?: unknown;
}

function parsed(data: Uint8Array): Written {
  try {
    const value: unknown = JSON.parse(Buffer.from(data).toString('utf8'));
    if (isRecord(value)) return value;
  } catch {
    throw unreadable();
  }
  throw unreadable();
}

function holderOf(entry: unknown, mzxid: bigint): HolderEntry {
  if (!isRecord(entry)) throw unreadable();
  const { lease, node, mode, token, home, lock_delay_ms: delay } = entry;
  if (typeof lease !== 'string' || typeof node !== 'string' || typeof home !== 'string' || typeof delay !== 'number') throw unreadable();
  if (mode !== 'exclusive' && mode !== 'shared') throw unreadable();
  if (token !== null && (typeof token !== 'string' || !/^[0-9]{1,19}$/.test(token))) throw unreadable();
  return { lease, node, mode, home, lockDelayMs: delay, token: token === null ? mzxid : BigInt(token) };
}

function breakOf(entry: unknown): BreakEntry {
  if (!isRecord(entry) || typeof entry.lease !== 'string' || typeof entry.until !== 'number') throw unreadable();
  return { lease: entry.lease, untilMs: entry.until };
}

function isRecord(value: unknown): value is Written {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function unreadable(): RangeError {
  return new RangeError('the data of a resource node is not of a version that this gateway knows');
}

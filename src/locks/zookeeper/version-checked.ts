import type { Claim } from '../coordinator.ts';
import type { Versioned, View } from './node-look.ts';
import { encodeState, type HolderEntry, type NextState } from './resource-node.ts';
import type { Stand } from './stand.ts';
import { type ZkClient, ZkError, type ZkStat } from './zk-client.ts';

/** `null`: somebody changed the node since it was looked at. Rejects when nobody knows whether it happened. */
export async function setState(client: ZkClient, path: string, next: NextState, version: number): Promise<ZkStat | null> {
  try {
    return (await client.set(path, encodeState(next), version)).stat;
  } catch (thrown) {
    if (thrown instanceof ZkError && thrown.failure === 'bad_version') return null;
    throw thrown;
  }
}

export interface Granted {
  readonly mzxid: bigint;
  readonly now: Versioned;
}

/**
 * The grant, and right behind it down the pipe the check that our own child is still there: only then is it held.
 * @returns the token (without base), and what the node has now; `null` when it was not granted, or is not held.
 */
export async function setGrant<C extends Claim>(client: ZkClient, path: string, { state, version }: View, stand: Stand<C>): Promise<Granted | null> {
  const { claim, mode, child } = stand;
  if (child === null) return null;
  const home = client.session?.id ?? '';
  const entry = { lease: claim.leaseRef, node: child.name, mode, home, lockDelayMs: claim.lockDelayMs };
  const set = setState(client, path, { ...state, holders: [...state.holders, { ...entry, token: null }] }, version);
  const [done, seen] = await Promise.allSettled([set, client.exists(`${path}/${child.name}`)]);
  if (done.status === 'rejected') throw done.reason;
  if (done.value === null) return null;
  if (seen.status === 'rejected') throw seen.reason;
  if (seen.value.stat?.ephemeralOwner !== client.session?.id) return null;
  const { mzxid, version: made } = done.value;
  return { mzxid, now: { state: { ...state, holders: [...state.holders, { ...entry, token: mzxid }] }, version: made } };
}

/** The holder becomes exclusive, with a new token; `null` when the node was changed meanwhile. */
export async function setUpgrade(client: ZkClient, path: string, { state, version }: View, holder: HolderEntry): Promise<bigint | null> {
  const holders = state.holders.map((one) => (one === holder ? { ...one, mode: 'exclusive' as const, token: null } : one));
  return (await setState(client, path, { ...state, holders, upgrade: null }, version))?.mzxid ?? null;
}

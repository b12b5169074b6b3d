import type { Claim } from '../coordinator.ts';
import type { View } from './node-look.ts';
import { encodeState, type HolderEntry, type NextState, type Versioned } from './resource-node.ts';
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

/** Somebody changed the node since it was looked at: nothing was written. */
export type Refused = 'refused';

/**
 * The grant, and right behind it down the pipe the check that our own child is still there: only then is it held.
 * @param child its name.
 * @returns the token (without base), and what the node has now; `null` when the node has it and it is not held: its child is not there.
 */
export async function setGrant<C extends Claim>(
  client: ZkClient,
  path: string,
  { state, version }: Versioned,
  { claim, mode }: Stand<C>,
  child: string,
): Promise<Granted | Refused | null> {
  const home = client.session?.id ?? '';
  const entry = { lease: claim.leaseRef, node: child, mode, home, lockDelayMs: claim.lockDelayMs };
  const set = setState(client, path, { ...state, holders: [...state.holders, { ...entry, token: null }] }, version);
  const [done, seen] = await Promise.allSettled([set, client.exists(`${path}/${child}`)]);
  if (done.status === 'rejected') throw done.reason;
  if (done.value === null) return 'refused';
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

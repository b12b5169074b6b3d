import type { Claim } from '../coordinator.ts';
import type { Expected, KnownNodes } from './known-nodes.ts';
import { type Child, contenderName } from './lock-node.ts';
import { decide } from './protocol.ts';
import { decodeState, FREE, isFree, type NodeState } from './resource-node.ts';
import type { Stand } from './stand.ts';
import { type Granted, type Refused, setGrant } from './version-checked.ts';
import type { ZkClient } from './zk-client.ts';
import { orNoNode } from './zk-nodes.ts';

/**
 * On a name that nobody else wants, a grant need not wait for the answers that it hangs on: its `set` goes down the pipe behind the contender
 * and the reads, with the version and the name of the child that they are going to tell if nobody comes between. A server carries out what one
 * session asks for in the order in which it was asked, so what happens there is the recipe: `create`, `get`, `children`, `set` (R1). The answers
 * are here before it counts: where the reads would not have led to that grant, the node refused it by its version, or has an entry that nobody
 * is told of and that is taken out again.
 */
export async function grantAhead<C extends Claim>(
  client: ZkClient,
  path: string,
  expected: Expected,
  stand: Stand<C>,
): Promise<Granted | Refused | null> {
  const { guid, mode, contender } = stand;
  stand.ahead = true;
  stand.untold = true;
  const granted = await setGrant(client, path, expected, stand, contenderName({ guid, mode, priority: contender.priority }, expected.sequence));
  if (granted === 'refused') stand.ahead = stand.untold = false;
  return granted;
}

/** What the node is expected to have. One that we know nothing of is read first: what others have written is not written over. `null`: no guess. */
export async function expectedAt(client: ZkClient, path: string, known: KnownNodes): Promise<Expected | null> {
  if (known.has(path)) return known.expected(path);
  const found = await orNoNode(client.get(path));
  if (found === null) return { state: FREE, version: 0, sequence: 0 };
  known.note(path);
  const { data, stat } = found;
  if (stat.numChildren > 0) return null;
  try {
    const state = decodeState(data, stat);
    return isFree(state) ? { state, version: stat.version, sequence: stat.cversion } : null;
  } catch (thrown) {
    // Whoever looks says what is wrong with it.
    if (thrown instanceof RangeError) return null;
    throw thrown;
  }
}

/** Whether somebody who looks, and decides as if its entry were not there, lets it in. */
export function isDue<C extends Claim>(state: NodeState, children: readonly Child[], { claim, child }: Stand<C>): boolean {
  if (child === null) return false;
  const holders = state.holders.filter(({ lease }) => lease !== claim.leaseRef);
  return decide({ state: { ...state, holders }, children, own: new Set([child.name]) }).kind === 'grant';
}

/** The only one of ours, who has just come; `null` when there is none. */
export function newcomer<C extends Claim>(stands: ReadonlyMap<string, Stand<C>>): Stand<C> | null {
  const [stand] = stands.values();
  if (stand === undefined || stand.child !== null || stand.doubtful) return null;
  return isAlone(stands, stand) ? stand : null;
}

/** Whether it is still the only one, and wants nothing but to be let in. */
export function isAlone<C extends Claim>(stands: ReadonlyMap<string, Stand<C>>, stand: Stand<C>): boolean {
  return stands.size === 1 && stands.get(stand.claim.leaseRef) === stand && stand.phase === 'joining' && stand.claim.isLive();
}

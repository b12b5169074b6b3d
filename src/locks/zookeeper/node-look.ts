import type { Claim } from '../coordinator.ts';
import type { Children } from './children.ts';
import { unavailable } from './contact-refusals.ts';
import { type Child, parseChild, SEQUENCE_RENEW } from './lock-node.ts';
import { decodeState, isFree, type NodeState, type Versioned } from './resource-node.ts';
import type { Stand } from './stand.ts';
import type { Granted, Refused } from './version-checked.ts';
import { type ZkClient, type ZkData, ZkError } from './zk-client.ts';

export interface View extends Versioned {
  /** Counts changes of the list of children. */
  readonly cversion: number;
  readonly children: readonly Child[];
  /** Every registered incarnation, read behind the rest; `null` when nobody of ours can be granted by this look. */
  readonly incarnations: readonly string[] | null;
  /**
   * What was granted ahead of this look. It counts when the look itself would have led to it, and must go otherwise; so must what the node has
   * (`null`) without the child that it names. `refused`: the node has nothing of that kind.
   */
  readonly ahead: Granted | Refused | null;
}

const NOT_ASKED: Refused = 'refused';

type Incarnations = () => Promise<{ readonly connection: number; readonly names: readonly string[] }>;

/**
 * One look at a resource's node, in the order that `protocol.ts` asks for: `get`, then `children`, on one connection. The creates
 * of contenders that have no child yet go down the pipe before it, a grant ahead and the read of the incarnations behind it.
 * @returns `null` when the pair is worth nothing, `no_node` when there is no such node.
 */
export async function lookAt<C extends Claim>(
  client: ZkClient,
  path: string,
  children: Children,
  joining: readonly Stand<C>[],
  incarnations: Incarnations | null,
  grantAhead: (() => Promise<Granted | Refused | null>) | null,
): Promise<View | 'no_node' | null> {
  const joined = Promise.allSettled(joining.map((stand) => children.join(stand, stand.contender.priority)));
  const reads = Promise.allSettled([client.get(path), client.children(path), grantAhead?.() ?? NOT_ASKED, incarnations?.() ?? null]);
  const failed = (await joined).find((result) => result.status === 'rejected');
  const [data, list, ahead, registered] = await reads;
  if (failed !== undefined) throw failed.reason;
  if (data.status === 'rejected') return absent(data.reason, joining);
  if (list.status === 'rejected') return absent(list.reason, joining);
  if (registered.status === 'rejected') throw registered.reason;
  if (ahead.status === 'rejected') throw ahead.reason;
  if (data.value.connection !== list.value.connection) return null;
  if (registered.value !== null && registered.value.connection !== list.value.connection) return null;
  if (joining.some((stand) => isBehind(stand, list.value.names))) return null;
  const numbered = await children.numbered(list.value.names.map(parseChild));
  const { stat } = data.value;
  return {
    state: stateOf(path, data.value),
    version: stat.version,
    cversion: stat.cversion,
    children: numbered,
    incarnations: registered.value?.names ?? null,
    ahead: ahead.value,
  };
}

/** Fails closed, and says so: who asks is refused until somebody has looked after the node. */
export function stateOf(path: string, { data, stat }: Pick<ZkData, 'data' | 'stat'>): NodeState {
  try {
    return decodeState(data, stat);
  } catch (thrown) {
    if (thrown instanceof RangeError) throw unavailable(`The node ${path} has data that no gateway wrote: nobody is granted while it has.`);
    throw thrown;
  }
}

function absent<C extends Claim>(reason: unknown, joining: readonly Stand<C>[]): 'no_node' | null {
  if (!(reason instanceof ZkError) || reason.failure !== 'no_node') throw reason;
  return joining.some((stand) => isBehind(stand, [])) ? null : 'no_node';
}

/** Whether its child was made behind the reads, as that of somebody who was looked for first: nobody else need ever look again. */
function isBehind<C extends Claim>({ child }: Stand<C>, listed: readonly string[]): boolean {
  return child !== null && !listed.includes(child.name);
}

/** Nobody needs the node, and its counter comes near its end: the next one who needs it makes it anew. */
export function isSpent({ cversion, state, children }: View): boolean {
  return cversion > SEQUENCE_RENEW && children.length === 0 && isFree(state);
}

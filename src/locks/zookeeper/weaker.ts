import type { Claim } from '../coordinator.ts';
import type { Children } from './children.ts';
import type { NextState, NodeState } from './resource-node.ts';
import type { Stand } from './stand.ts';

type Holders = Pick<NextState, 'holders'>;

/**
 * Others watch children, and not the node: what becomes less there is told by a change of the child (R1). It is owed from before the `set` until
 * the child was changed, so that a lost reply of either leaves nobody asleep.
 */
export function oweWeaker<C extends Claim>(before: NodeState, next: Holders, stands: ReadonlyMap<string, Stand<C>>): void {
  const after = new Map(next.holders.map(({ lease, mode }) => [lease, mode]));
  for (const { lease, mode } of before.holders) {
    const stand = stands.get(lease);
    if (stand !== undefined && stand.phase !== 'leaving' && after.get(lease) !== mode) stand.untold = true;
  }
}

/** Changes the children of those who hold less in this state than others may believe. */
export async function tellWeaker<C extends Claim>(state: Holders, stands: Iterable<Stand<C>>, children: Children): Promise<void> {
  await Promise.all(
    [...stands].map(async (stand) => {
      if (!stand.untold || !isWeaker(state, stand)) return;
      await children.touch(stand);
      stand.untold = false;
      stand.ahead = false;
    }),
  );
}

/** An entry that nobody had decided on is not weaker before it has gone. */
function isWeaker<C extends Claim>({ holders }: Holders, { phase, claim, ahead }: Stand<C>): boolean {
  if (phase === 'leaving' || phase === 'joining') return false;
  const entry = holders.find(({ lease }) => lease === claim.leaseRef);
  return entry === undefined || (entry.mode === 'shared' && !ahead);
}

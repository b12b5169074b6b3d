import type { CoordinatorNode } from '../../domain/administration.ts';
import type { Resource } from '../../domain/resource.ts';
import { answered } from './contact-refusals.ts';
import { byArrival, type Child, parseChild, SEQUENCE_RENEW } from './lock-node.ts';
import { stateOf, type View } from './node-look.ts';
import type { ZkClient } from './zk-client.ts';
import { orNoNode } from './zk-nodes.ts';

/** A line as a diagnosis sees it. */
export interface InspectedLine {
  readonly entry: { readonly resource: Resource };
  readonly path: string;
  /** What it saw last; `null` before its first look. */
  readonly view: View | null;
  /** Whether a contender of ours is, or may be, behind the child. */
  isStanding(guid: string): boolean;
}

/**
 * What is wrong with nodes that somebody of ours looks at: children of this very session that no lease stands behind, and counters
 * that come near their end. Idle nodes are not looked at: nobody lists a volume.
 */
export async function inspectNodes(client: ZkClient, lines: readonly InspectedLine[]): Promise<readonly CoordinatorNode[]> {
  const found: CoordinatorNode[] = [];
  for (const line of lines) {
    const { path, view } = line;
    const { resource } = line.entry;
    if (view === null) continue;
    if (view.cversion > SEQUENCE_RENEW) found.push({ kind: 'counter_high', resource, node: path, changes: view.cversion });
    for (const { name, contender } of view.children) {
      if (contender === null || line.isStanding(contender.guid)) continue;
      const node = `${path}/${name}`;
      if (await isOurs(client, node)) found.push({ kind: 'orphan', resource, node, changes: view.cversion });
    }
  }
  return found;
}

/** Proves again that nobody stands behind it. @returns false when it is gone, or somebody does. */
export async function removeOrphan(client: ZkClient, line: InspectedLine, node: string): Promise<boolean> {
  const child = line.view?.children.find(({ name }) => `${line.path}/${name}` === node);
  if (child?.contender == null || line.isStanding(child.contender.guid) || !(await isOurs(client, node))) return false;
  return (await orNoNode(client.remove(node, null))) !== null;
}

/**
 * The contenders of other recipes at a node at which nobody of ours stands. Rejects with `coordinator_unavailable`, also where it has data that no
 * gateway wrote.
 */
export async function foreignAt(client: ZkClient, path: string): Promise<readonly string[]> {
  await answered(client.sync(path));
  const [found, list] = await answered(Promise.all([orNoNode(client.get(path)), orNoNode(client.children(path))]));
  if (found !== null) stateOf(path, found);
  return foreignOf((list?.names ?? []).map(parseChild));
}

/** In the order in which they came; the end of the counter does not matter for a report. */
export function foreignOf(children: readonly Child[]): readonly string[] {
  return children
    .filter(({ contender }) => contender === null)
    .sort(byArrival)
    .map(({ name }) => name);
}

async function isOurs(client: ZkClient, node: string): Promise<boolean> {
  return (await client.exists(node)).stat?.ephemeralOwner === client.session?.id;
}

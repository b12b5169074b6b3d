import type { LeaseMode } from '../../domain/lease.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { KnownNodes } from './known-nodes.ts';
import { byArrival, type Child, contenderPrefix, parseChild } from './lock-node.ts';
import { type ZkClient, ZkError } from './zk-client.ts';
import { orNoNode } from './zk-nodes.ts';

/** What of a claim these calls read and change. */
export interface Owner {
  readonly guid: string;
  readonly mode: LeaseMode;
  child: Child | null;
  childVersion: number;
  doubtful: boolean;
}

const NOTHING = new Uint8Array();

/** The children of one resource's node: made, found again, touched and deleted by their own gateway only. */
export class Children {
  readonly #client: ZkClient;
  readonly #path: string;
  readonly #known: KnownNodes;
  readonly #czxids = new Map<string, bigint>();

  constructor(client: ZkClient, path: string, known: KnownNodes) {
    this.#client = client;
    this.#path = path;
    this.#known = known;
  }

  /** The resource's node may be gone. */
  unknown(): void {
    this.#known.forget(this.#path);
  }

  /**
   * Makes the child. On a path never seen, node and child go down the pipe together. After a lost reply it is looked for by its
   * GUID (trap T10), and counts only if it belongs to this very session (trap T11).
   */
  async join(owner: Owner, priority: number): Promise<void> {
    if (owner.doubtful && (await this.#found(owner))) return;
    const prefix = `${this.#path}/${contenderPrefix({ guid: owner.guid, mode: owner.mode, priority })}`;
    for (let tries = 0; tries < LIMITS.zookeeperCreatesMax; tries += 1) {
      const node = this.#known.has(this.#path) ? null : this.makeNode();
      owner.doubtful = true;
      try {
        const { path } = await this.#client.create(prefix, NOTHING, 'ephemeral_sequential');
        owner.doubtful = false;
        owner.child = parseChild(path.slice(path.lastIndexOf('/') + 1));
        await node;
        return;
      } catch (thrown) {
        const known = thrown instanceof ZkError && thrown.failure !== 'unknown' && thrown.failure !== 'session_over';
        owner.doubtful = !known;
        await node;
        if (!(thrown instanceof ZkError) || thrown.failure !== 'no_node') throw thrown;
        this.unknown();
      }
    }
    throw new ZkError('unknown', 'the node of the resource is deleted again and again');
  }

  /** The resource's node, unless it is there. */
  async makeNode(): Promise<void> {
    try {
      await this.#client.create(this.#path, NOTHING, 'persistent');
    } catch (thrown) {
      if (!(thrown instanceof ZkError) || thrown.failure !== 'node_exists') {
        // The volume's own node is made at registration; without it nothing below can be made.
        if (thrown instanceof ZkError && thrown.failure === 'unknown') return;
        throw thrown;
      }
    }
    this.#known.note(this.#path);
  }

  /** Deletes it, and whatever else has its GUID; resolves when that is certain. */
  async leave(owner: Owner): Promise<void> {
    if (owner.doubtful && !(await this.#found(owner))) return;
    if (owner.child === null) return;
    owner.doubtful = true;
    await this.#remove(owner.child.name);
    owner.doubtful = false;
    owner.child = null;
  }

  async touch(owner: Owner): Promise<void> {
    if (owner.child === null) return;
    const path = `${this.#path}/${owner.child.name}`;
    for (let tries = 0; tries < LIMITS.zookeeperCreatesMax; tries += 1) {
      try {
        owner.childVersion = (await this.#client.set(path, NOTHING, owner.childVersion)).stat.version;
        return;
      } catch (thrown) {
        if (thrown instanceof ZkError && thrown.failure === 'no_node') return;
        if (!(thrown instanceof ZkError) || thrown.failure !== 'bad_version') throw thrown;
        owner.childVersion = (await this.#client.get(path)).stat.version;
      }
    }
  }

  /** Children past the end of the counter get the order in which they were made. */
  async numbered(children: readonly Child[]): Promise<readonly Child[]> {
    if (children.every(({ sequence }) => sequence !== null)) return children;
    const numbered = await Promise.all(
      children.map(async (child) => {
        if (child.sequence !== null) return child;
        const known = this.#czxids.get(child.name) ?? (await this.#client.exists(`${this.#path}/${child.name}`)).stat?.czxid ?? null;
        if (known !== null) this.#czxids.set(child.name, known);
        return known === null ? null : { ...child, czxid: known };
      }),
    );
    const there = numbered.filter((child) => child !== null);
    const names = new Set(there.map(({ name }) => name));
    for (const name of this.#czxids.keys()) if (!names.has(name)) this.#czxids.delete(name);
    return there;
  }

  /** Nobody needs the node: removed if nobody has touched it, so that its counter begins anew. */
  forget(version: number): void {
    this.unknown();
    // Whatever comes of it: the next one who needs the node makes it.
    this.#client.remove(this.#path, version).catch(() => undefined);
  }

  async #found(owner: Owner): Promise<boolean> {
    await this.#client.sync(this.#path);
    const names = await this.#names();
    const mine = names.map(parseChild).filter(({ contender }) => contender?.guid === owner.guid);
    const [lowest, ...others] = [...(await this.numbered(mine))].sort(byArrival);
    for (const { name } of others) await this.#remove(name);
    const stat = lowest === undefined ? null : (await this.#client.exists(`${this.#path}/${lowest.name}`)).stat;
    owner.doubtful = false;
    if (lowest === undefined || stat === null || stat.ephemeralOwner !== this.#client.session?.id) return false;
    owner.child = lowest;
    owner.childVersion = stat.version;
    return true;
  }

  async #names(): Promise<readonly string[]> {
    return (await orNoNode(this.#client.children(this.#path)))?.names ?? [];
  }

  async #remove(name: string): Promise<void> {
    await orNoNode(this.#client.remove(`${this.#path}/${name}`, null));
  }
}

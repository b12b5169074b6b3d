import { parseChild } from './lock-node.ts';
import { type ZkClient, ZkError } from './zk-client.ts';
import { orNoNode } from './zk-nodes.ts';

/** One watch for each child that somebody of ours waits for, left by `get` (trap N3: never by `exists`, which watches what is not there). */
export class ChildWatches {
  readonly #client: ZkClient;
  readonly #path: string;
  readonly #isStanding: (guid: string) => boolean;
  readonly #watched = new Set<string>();
  /** How often their own gateways changed them, as far as we have looked since. */
  readonly #changes = new Map<string, number>();

  /** @param isStanding whether a contender of ours is, or may be, behind the child with this GUID. */
  constructor(client: ZkClient, path: string, isStanding: (guid: string) => boolean) {
    this.#client = client;
    this.#path = path;
    this.#isStanding = isStanding;
  }

  fired(child: string): void {
    this.#watched.delete(child);
  }

  /** After a reconnect: what is there may not be what was watched. */
  distrust(): void {
    this.#watched.clear();
  }

  /** @returns whether one of them was gone or changed already, between the look and the watch, so that nothing will fire for that. */
  async watch(targets: ReadonlySet<string>): Promise<boolean> {
    const fresh = [...targets].filter((name) => !this.#watched.has(name));
    for (const name of fresh) this.#watched.add(name);
    return (await Promise.all(fresh.map((name) => this.#isPast(name)))).includes(true);
  }

  async #isPast(name: string): Promise<boolean> {
    try {
      const { stat } = await this.#client.get(`${this.#path}/${name}`, { watch: true });
      const unseen = stat.version !== (this.#changes.get(name) ?? 0);
      this.#changes.set(name, stat.version);
      if (!this.#isOrphan(name, stat.ephemeralOwner)) return unseen;
    } catch (thrown) {
      this.#watched.delete(name);
      this.#changes.delete(name);
      if (!(thrown instanceof ZkError) || thrown.failure !== 'no_node') throw thrown;
      return true;
    }
    this.#watched.delete(name);
    await orNoNode(this.#client.remove(`${this.#path}/${name}`, null));
    return true;
  }

  /**
   * A child of this very session that no lease stands behind: a server has brought it back (those of ZooKeeper 3.8.0 do, after they
   * joined under load and became the leader). Nobody else may delete it, and it would bar all others for as long as the session lives.
   */
  #isOrphan(name: string, owner: string): boolean {
    const { contender } = parseChild(name);
    return contender !== null && owner === this.#client.session?.id && !this.#isStanding(contender.guid);
  }
}

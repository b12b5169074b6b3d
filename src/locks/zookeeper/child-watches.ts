import { type ZkClient, ZkError } from './zk-client.ts';

/** One watch for each child that somebody of ours waits for, left by `get` (trap N3: never by `exists`, which watches what is not there). */
export class ChildWatches {
  readonly #client: ZkClient;
  readonly #path: string;
  readonly #watched = new Set<string>();

  constructor(client: ZkClient, path: string) {
    this.#client = client;
    this.#path = path;
  }

  fired(child: string): void {
    this.#watched.delete(child);
  }

  /** @returns whether one of them was gone already, so that nothing will ever fire for it. */
  async watch(targets: ReadonlySet<string>): Promise<boolean> {
    const fresh = [...targets].filter((name) => !this.#watched.has(name));
    for (const name of fresh) this.#watched.add(name);
    return (await Promise.all(fresh.map((name) => this.#isGone(name)))).includes(true);
  }

  async #isGone(name: string): Promise<boolean> {
    try {
      await this.#client.get(`${this.#path}/${name}`, { watch: true });
      return false;
    } catch (thrown) {
      this.#watched.delete(name);
      if (!(thrown instanceof ZkError) || thrown.failure !== 'no_node') throw thrown;
      return true;
    }
  }
}

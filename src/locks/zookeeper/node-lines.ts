import type { Resource } from '../../domain/resource.ts';
import type { Claim } from '../coordinator.ts';
import { ResourceEntry } from '../embedded/resource-entry.ts';
import { znodePath } from '../znode-path.ts';
import { KnownNodes } from './known-nodes.ts';
import { NodeLine } from './node-line.ts';
import type { NodeLineHost } from './stand.ts';

/** The lines of one session, found by resource and by node. They exist while somebody of ours stands there. */
export class NodeLines<C extends Claim> {
  readonly #root: string;
  readonly #byKey = new Map<string, NodeLine<C>>();
  readonly #byPath = new Map<string, NodeLine<C>>();
  readonly #known = new KnownNodes();
  #made = 0;

  constructor(root: string) {
    this.#root = root;
  }

  get(resourceKey: string): NodeLine<C> | undefined {
    return this.#byKey.get(resourceKey);
  }

  at(path: string): NodeLine<C> | undefined {
    return this.#byPath.get(path);
  }

  all(): readonly NodeLine<C>[] {
    return [...this.#byKey.values()];
  }

  /** Those of the present session: a line of one that is lost mints no number any more. */
  present(lines: readonly NodeLine<C>[]): readonly NodeLine<C>[] {
    return lines.filter((line) => this.#byKey.get(line.entry.resource.key) === line);
  }

  make(host: NodeLineHost<C>, resource: Resource): NodeLine<C> {
    this.#made += 1;
    const line = new NodeLine<C>(host, new ResourceEntry<C>(this.#made, resource), znodePath(resource, this.#root), this.#known);
    this.#byKey.set(resource.key, line);
    this.#byPath.set(line.path, line);
    return line;
  }

  drop(line: NodeLine<C>): void {
    if (this.#byKey.get(line.entry.resource.key) !== line) return;
    this.#byKey.delete(line.entry.resource.key);
    this.#byPath.delete(line.path);
  }

  /** The session is lost. */
  stop(): void {
    for (const line of this.#byKey.values()) line.stop();
    this.#byKey.clear();
    this.#byPath.clear();
    this.#known.expectNothing();
  }
}

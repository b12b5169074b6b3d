import type { Claim } from '../coordinator.ts';
import type { ResourceEntry } from '../embedded/resource-entry.ts';
import type { Children } from './children.ts';
import { expectedAt, grantAhead, isAlone, isDue, newcomer } from './grant-ahead.ts';
import type { KnownNodes } from './known-nodes.ts';
import { lookAt, type View } from './node-look.ts';
import type { NodeLineHost, Stand } from './stand.ts';
import { childless, keptChildren, queued } from './stands.ts';
import type { Granted, Refused } from './version-checked.ts';

export interface LookingParts<C extends Claim> {
  readonly host: NodeLineHost<C>;
  readonly entry: ResourceEntry<C>;
  readonly path: string;
  readonly children: Children;
  readonly known: KnownNodes;
  readonly stands: ReadonlyMap<string, Stand<C>>;
  /** Whether nothing is wanted but to be let in. */
  readonly onlyGrants: () => boolean;
  readonly again: () => void;
}

/** The looks of ours at one node: behind a `sync` when what we know of it is in doubt, with a grant ahead for whoever comes alone. */
export class Looking<C extends Claim> {
  readonly #parts: LookingParts<C>;
  #doubt = false;

  constructor(parts: LookingParts<C>) {
    this.#parts = parts;
  }

  /** What was sent may have happened, or something may have that nobody told. */
  doubt(): void {
    this.#doubt = true;
  }

  get inDoubt(): boolean {
    return this.#doubt;
  }

  /** The volume's title is looked at again: whether somebody may be let in is known in a moment. */
  get isJudged(): boolean {
    const { host, entry } = this.#parts;
    const { volume } = entry.resource;
    return host.titles.keeps(volume) && !host.titles.owns(volume);
  }

  async look(): Promise<View | 'no_node' | null> {
    const { host, entry, path, children, stands, onlyGrants } = this.#parts;
    if (this.#doubt) {
      await host.client.sync(path);
      this.#doubt = false;
    }
    const granting = host.mayGrant(entry) && (queued(stands.values()).length > 0 || entry.upgrader !== null);
    const stand = granting && onlyGrants() ? newcomer(stands) : null;
    return lookAt(
      host.client,
      path,
      children,
      childless(stands.values()),
      granting ? () => host.titles.incarnations() : null,
      stand === null ? null : this.#grantAhead(stand),
    );
  }

  /** What a dead incarnation left on the volume is fenced before anybody is granted; another look follows when that is done. */
  async isCleared({ incarnations }: View): Promise<boolean> {
    const { host, entry, again } = this.#parts;
    if (incarnations !== null) return host.titles.cleared(entry.resource.volume, incarnations);
    if (host.mayGrant(entry)) again();
    return false;
  }

  /** What was granted ahead of any look is a grant if this look leads to it. */
  async isRightful(view: View, stand: Stand<C>): Promise<boolean> {
    const children = [...view.children, ...keptChildren(view.state, this.#parts.stands)];
    return isDue(view.state, children, stand) && (await this.isCleared(view));
  }

  /** What the node is expected to have is asked for before anything of this look is; the grant goes behind the rest of it. */
  #grantAhead(stand: Stand<C>): () => Promise<Granted | Refused | null> {
    const { host, entry, path, known, stands } = this.#parts;
    const asked = expectedAt(host.client, path, known);
    return async () => {
      const expected = await asked;
      // Whoever it was may have left meanwhile, or others may have come.
      return expected !== null && isAlone(stands, stand) && host.mayGrant(entry) ? grantAhead(host.client, path, expected, stand) : 'refused';
    };
  }
}

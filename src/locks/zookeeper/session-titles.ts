import type { Clock, Random } from '../../domain/clock.ts';
import { LIMITS } from '../../domain/limits.ts';
import { VolumeTaken } from '../../domain/volume-title.ts';
import type { Incarnations, RegisteredVolume, SeenIncarnation } from './incarnations.ts';
import type { Titles } from './place.ts';
import { claimName, type NameClaim, ownerPath } from './volume-node.ts';
import { type ZkClient, ZkError, type ZkStat } from './zk-client.ts';
import { failedWith, orNoNode } from './zk-nodes.ts';

export interface SessionTitlesOptions {
  readonly client: ZkClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly root: string;
  readonly gatewayUuid: string;
  readonly incarnations: Incarnations;
  /** Our own name among them. */
  readonly incarnation: string;
  /** Somebody took the title of a volume away, or has something on it that nobody fenced: it must be claimed again. */
  readonly onLost: (volume: string) => void;
  /** Grants that waited for a title may go on. */
  readonly onOpened: () => void;
}

interface Claimed {
  readonly volume: string;
  readonly uuid: string;
  readonly path: string;
  /** Of the owner's node: every grant through us has a higher number, every earlier one a lower. */
  readonly zxid: bigint;
  /** Which dead incarnation each directory is of. */
  readonly left: ReadonlyMap<string, string>;
}

/** Which volumes one coordinator session owns (`root/.owners`), and what dead incarnations left on them. */
export class SessionTitles implements Titles {
  readonly #options: SessionTitlesOptions;
  readonly #claimed = new Map<string, Claimed>();
  /** Somebody may be granted there. */
  readonly #open = new Set<string>();
  /** The same, and those whose node is about to be looked at again: ours as long as nobody has seen otherwise. */
  readonly #kept = new Set<string>();
  /** Incarnations that had nothing on any volume of ours when they were read. They get nothing there while we own it. */
  readonly #harmless = new Set<string>();
  /** Our own record is changed by one claim at a time. */
  #turn: Promise<void> = Promise.resolve();

  constructor(options: SessionTitlesOptions) {
    this.#options = options;
    options.client.onWatch((path) => this.#fired(path));
  }

  owns(volume: string): boolean {
    return this.#open.has(volume);
  }

  keeps(volume: string): boolean {
    return this.#kept.has(volume);
  }

  /** Rejects with `VolumeTaken`, or a `ZkError`. */
  async claim(claim: NameClaim): Promise<Claimed> {
    const { client, root, random } = this.#options;
    const { volume } = claim;
    this.#open.delete(volume);
    this.#kept.delete(volume);
    const uuid = await claimName(client, root, random, claim);
    const path = ownerPath(root, uuid);
    const { czxid } = await this.#own(volume, path);
    const dead = await this.#deadOn(volume, uuid);
    await this.#register((volumes) => (volumes.some((one) => one.uuid === uuid) ? volumes : [...volumes, { uuid, name: volume, directories: [] }]));
    const left = new Map(dead.flatMap(({ name, volumes }) => directoriesOf(volumes, uuid).map((directory) => [directory, name])));
    for (const { name, volumes } of dead) if (directoriesOf(volumes, uuid).length === 0) await this.#deregister(name, uuid, null);
    const claimed: Claimed = { volume, uuid, path, zxid: czxid, left };
    this.#claimed.set(volume, claimed);
    return claimed;
  }

  async published({ uuid }: Claimed, directory: string): Promise<void> {
    await this.#register((volumes) =>
      volumes.map((one) => (one.uuid === uuid ? { ...one, directories: [...one.directories.filter((name) => name !== directory), directory] } : one)),
    );
  }

  async gone({ uuid, left }: Claimed, directory: string): Promise<void> {
    const dead = left.get(directory);
    if (dead !== undefined) await this.#deregister(dead, uuid, directory);
    else await this.#register((volumes) => volumes.map((one) => (one.uuid === uuid ? without(one, directory) : one)));
  }

  opened(claimed: Claimed): void {
    if (this.#claimed.get(claimed.volume) !== claimed) return;
    this.#open.add(claimed.volume);
    this.#kept.add(claimed.volume);
    this.#options.onOpened();
  }

  incarnations(): Promise<{ readonly connection: number; readonly names: readonly string[] }> {
    return this.#options.incarnations.names();
  }

  async cleared(volume: string, names: readonly string[]): Promise<boolean> {
    const { incarnations, incarnation } = this.#options;
    const strange = names.filter((name) => name !== incarnation && !this.#harmless.has(name));
    for (const name of strange) {
      const seen = await incarnations.look(name);
      if (seen === null) continue;
      const touched = [...this.#claimed.values()].filter(({ uuid }) => isOn(seen, uuid));
      if (touched.length === 0) this.#harmless.add(name);
      // One that is not open is being fenced right now.
      for (const claimed of touched) if (this.owns(claimed.volume)) this.#lose(claimed);
    }
    for (const name of this.#harmless) if (!names.includes(name)) this.#harmless.delete(name);
    return this.owns(volume);
  }

  /** Whoever cannot make the owner's node does not own the volume. */
  async #own(volume: string, path: string): Promise<ZkStat> {
    const { client, gatewayUuid, incarnation } = this.#options;
    try {
      await client.create(path, Buffer.from(JSON.stringify({ v: 1, gateway: gatewayUuid, incarnation })), 'ephemeral');
    } catch (thrown) {
      if (!failedWith(thrown, 'node_exists')) throw thrown;
    }
    // The watch: nobody but the session's end removes it, and if somebody does all the same, we know before we see what follows.
    const found = await orNoNode(client.get(path, { watch: true }));
    if (found !== null && this.#isOurs(found.stat)) return found.stat;
    const owner = found === null ? '' : ` (${gatewayIn(found.data, gatewayUuid)})`;
    throw new VolumeTaken(`Another session that lives owns the volume ${volume}${owner}; it is taken over when that one is gone.`, {
      lasting: false,
    });
  }

  /** Who registered something on the volume and is dead. Read when the title is ours, so nobody is added. */
  async #deadOn(volume: string, uuid: string): Promise<readonly SeenIncarnation[]> {
    const { incarnations, incarnation } = this.#options;
    const others = (await incarnations.all()).filter(({ name }) => name !== incarnation);
    const onIt = others.filter((seen) => isOn(seen, uuid));
    for (const { name } of others) if (!onIt.some((seen) => seen.name === name)) this.#noteHarmless(name, others);
    const alive = onIt.find(({ lives }) => lives);
    if (alive !== undefined)
      throw new VolumeTaken(`The incarnation ${alive.name} of the gateway ${alive.gateway} lives and has a directory on the volume ${volume}.`, {
        lasting: false,
      });
    for (const { name } of onIt) this.#harmless.delete(name);
    return onIt;
  }

  #noteHarmless(name: string, seen: readonly SeenIncarnation[]): void {
    const one = seen.find((incarnation) => incarnation.name === name);
    const touches = one !== undefined && [...this.#claimed.values()].some(({ uuid }) => isOn(one, uuid));
    if (!touches) this.#harmless.add(name);
  }

  async #deregister(incarnation: string, uuid: string, directory: string | null): Promise<void> {
    await this.#options.incarnations.change(incarnation, (volumes) =>
      volumes.flatMap((one) => {
        if (one.uuid !== uuid) return [one];
        const rest = directory === null ? one : without(one, directory);
        return rest.directories.length === 0 ? [] : [rest];
      }),
    );
  }

  #register(changed: (volumes: readonly RegisteredVolume[]) => readonly RegisteredVolume[]): Promise<void> {
    const { incarnations, incarnation } = this.#options;
    const change = async (): Promise<void> => {
      if (!(await incarnations.change(incarnation, changed))) throw new ZkError('session_over', 'the record of this incarnation is gone');
    };
    const turn = this.#turn.then(change, change);
    this.#turn = turn;
    return turn;
  }

  #fired(path: string): void {
    for (const claimed of this.#claimed.values()) {
      if (claimed.path !== path) continue;
      const wasOpen = this.#open.delete(claimed.volume);
      void this.#verify(claimed, wasOpen);
    }
  }

  /** The watch fires too when the client process died; until the owner's node was seen again nobody is granted. */
  async #verify(claimed: Claimed, wasOpen: boolean): Promise<void> {
    const { client, clock } = this.#options;
    while (this.#claimed.get(claimed.volume) === claimed) {
      try {
        const found = await orNoNode(client.get(claimed.path, { watch: true }));
        if (found === null || !this.#isOurs(found.stat)) this.#lose(claimed);
        else if (wasOpen) this.opened(claimed);
        return;
      } catch (thrown) {
        if (failedWith(thrown, 'session_over')) return;
        await new Promise<void>((resolve) => clock.after(LIMITS.zookeeperRetryMs, resolve));
      }
    }
  }

  #lose(claimed: Claimed): void {
    if (this.#claimed.get(claimed.volume) !== claimed) return;
    this.#claimed.delete(claimed.volume);
    this.#open.delete(claimed.volume);
    this.#kept.delete(claimed.volume);
    this.#options.onLost(claimed.volume);
  }

  #isOurs({ ephemeralOwner }: ZkStat): boolean {
    return ephemeralOwner === this.#options.client.session?.id;
  }
}

function isOn({ volumes }: SeenIncarnation, uuid: string): boolean {
  return volumes.some((one) => one.uuid === uuid);
}

function directoriesOf(volumes: readonly RegisteredVolume[], uuid: string): readonly string[] {
  return volumes.find((one) => one.uuid === uuid)?.directories ?? [];
}

function without(volume: RegisteredVolume, directory: string): RegisteredVolume {
  return { ...volume, directories: volume.directories.filter((name) => name !== directory) };
}

function gatewayIn(data: Uint8Array, own: string): string {
  const gateway = /"gateway":"([^"]*)"/.exec(Buffer.from(data).toString('utf8'))?.[1] ?? 'unknown';
  return gateway === own ? 'an earlier one of this gateway' : `of the gateway ${gateway}`;
}

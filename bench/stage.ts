import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Endings } from './endings.ts';
import { Driver } from './load/driver.ts';
import type { ProcessTree } from './measure/process-tree.ts';
import type { Place } from './place/file-system.ts';
import type { Needed } from './place/packages.ts';

/** A server (or another product) that takes turns with the others in a run. */
export interface Peer<Running extends RunningPeer> {
  readonly id: string;
  readonly needs: readonly Needed[];
  /** Starts it, its packages installed, with its files in `directory`, which is empty and its own. @throws StopLine when it cannot be started. */
  start(directory: string, stage: Stage): Promise<Running>;
}

export interface RunningPeer {
  readonly processes: ProcessTree;
  /** Those of them that are the coordinator's servers. */
  readonly ensemble?: ProcessTree;
  /** Name and version, as the peer itself tells it. */
  readonly version: string;
}

/** What a run has: the place, the load driver, and every peer that was asked for, started once and ended with the run. */
export class Stage {
  readonly place: Place;
  readonly endings: Endings;
  readonly say: (line: string) => void;
  readonly driver: Driver;
  readonly #peers = new Map<string, Promise<RunningPeer>>();

  constructor(place: Place, endings: Endings, say: (line: string) => void) {
    this.place = place;
    this.endings = endings;
    this.say = say;
    this.driver = new Driver(endings);
  }

  async running<Running extends RunningPeer>(peer: Peer<Running>): Promise<Running> {
    const started = this.#peers.get(peer.id) ?? this.#start(peer);
    this.#peers.set(peer.id, started);
    // One id is one peer, so what was started under it is of its type.
    return (await started) as Running;
  }

  async versions(): Promise<Readonly<Record<string, string>>> {
    const entries: [string, string][] = [];
    for (const [id, peer] of this.#peers) entries.push([id, (await peer).version]);
    return Object.fromEntries(entries);
  }

  async #start<Running extends RunningPeer>(peer: Peer<Running>): Promise<Running> {
    const directory = join(this.place.directory, peer.id);
    await mkdir(directory);
    return peer.start(directory, this);
  }
}

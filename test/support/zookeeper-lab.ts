import type { Random } from '../../src/domain/clock.ts';
import type { GatewayError } from '../../src/domain/errors.ts';
import type { CoordinatorReadiness } from '../../src/domain/health.ts';
import type { Coordination } from '../../src/locks/coordination.ts';
import type { Lease } from '../../src/locks/lease-record.ts';
import { suspended, unavailable } from '../../src/locks/zookeeper/contact-refusals.ts';
import type { Titles } from '../../src/locks/zookeeper/place.ts';
import type { ZkClient } from '../../src/locks/zookeeper/zk-client.ts';
import { ZookeeperCoordinator } from '../../src/locks/zookeeper/zookeeper-coordinator.ts';
import { type FakeClock, seededRandom } from './fake-clock.ts';
import { FakeEnsemble, type FakeZk } from './fake-ensemble.ts';
import { type LabOptions, LockLab } from './lock-lab.ts';

type State = CoordinatorReadiness['state'];

/** The contact as the test tells it; `null`: it is proven. */
export class ToldContact {
  refusal: GatewayError | null = null;
  remainderMs = Number.POSITIVE_INFINITY;
  /** What shows when somebody judges it. */
  whenJudged: () => void = () => undefined;
  readonly #listeners: ((state: State) => void)[] = [];

  onState(listener: (state: State) => void): void {
    this.#listeners.push(listener);
  }

  judged(): GatewayError | null {
    this.whenJudged();
    return this.refusal;
  }

  becomes(state: State, refusal: GatewayError | null): void {
    this.refusal = refusal;
    for (const listener of this.#listeners) listener(state);
  }
}

/** A lock service over a ZooKeeper ensemble in memory, whose contact is proven as long as nobody says otherwise. */
export class ZookeeperLab extends LockLab {
  readonly ensemble: FakeEnsemble;
  readonly client: FakeZk;
  readonly coordinator: ZookeeperCoordinator<Lease>;
  readonly #made: Made;

  constructor(options: Omit<LabOptions, 'coordination'> = {}) {
    const made: Made = { owned: true, kept: true, cleared: true, contact: new ToldContact() };
    super({
      ...options,
      coordination: (clock, queueMax) => coordination(made, clock, queueMax),
    });
    if (made.ensemble === undefined || made.client === undefined || made.coordinator === undefined)
      throw new Error('the lock service made no coordinator');
    this.ensemble = made.ensemble;
    this.client = made.client;
    this.coordinator = made.coordinator;
    this.#made = made;
  }

  /** How long what was proven last can be counted on. */
  set remainderMs(remainderMs: number) {
    this.#made.contact.remainderMs = remainderMs;
  }

  /** The contact is proven no more; what is in flight may be answered or not. */
  suspend(): void {
    this.#made.contact.becomes('suspended', suspended());
  }

  /** The same session is proven again. */
  reconnect(): void {
    this.#made.contact.refusal = null;
    this.coordinator.resume();
    this.#made.contact.becomes('reconnected', null);
  }

  lose(): void {
    this.#made.contact.whenJudged = () => undefined;
    this.coordinator.end();
    this.#made.contact.becomes('lost', unavailable());
  }

  /** Its time is up, and whoever asks next is the first to find out. */
  loseWhenJudged(): void {
    this.#made.contact.whenJudged = () => this.lose();
  }

  /** Whether nothing of a dead incarnation is on its volumes, from now on. */
  set cleared(cleared: boolean) {
    this.#made.cleared = cleared;
  }

  /** Whether its volumes are its own, from now on. */
  set owned(owned: boolean) {
    this.#made.owned = owned;
    this.#made.kept = owned;
  }

  /** The title of its volumes is looked at again: they are still its own, and not owned before that is seen. */
  set judged(judged: boolean) {
    this.#made.owned = !judged;
  }
}

interface Made {
  readonly contact: ToldContact;
  cleared: boolean;
  ensemble?: FakeEnsemble;
  client?: FakeZk;
  coordinator?: ZookeeperCoordinator<Lease>;
  owned: boolean;
  kept: boolean;
}

function coordination(made: Made, clock: FakeClock, queueMax: (volume: string) => number): Coordination {
  const ensemble = new FakeEnsemble(() => clock.wallMs());
  for (const path of ['/locks', '/locks/.gateways', '/locks/vol', '/locks/other']) ensemble.create(path, new Uint8Array(), '0', false);
  const client = ensemble.open();
  const { coordinator, ...rest } = coordinationOver({
    client,
    clock,
    queueMax,
    owns: () => made.owned,
    keeps: () => made.kept,
    cleared: () => made.cleared,
    contact: made.contact,
  });
  Object.assign(made, { ensemble, client, coordinator });
  return { coordinator, ...rest };
}

interface Over {
  readonly client: ZkClient;
  readonly clock: FakeClock;
  readonly queueMax: (volume: string) => number;
  readonly owns?: () => boolean;
  readonly keeps?: () => boolean;
  readonly cleared?: () => boolean;
  readonly contact?: ToldContact;
  readonly random?: Random;
}

/** The coordinator over a session that nobody doubts, until `begin` gives it another one. */
export function coordinationOver({
  client: first,
  clock,
  queueMax,
  owns = () => true,
  keeps = () => true,
  cleared = () => true,
  contact = new ToldContact(),
  random = seededRandom(7),
}: Over): Coordination & { readonly coordinator: ZookeeperCoordinator<Lease>; readonly begin: (client: ZkClient) => void } {
  const coordinator = new ZookeeperCoordinator<Lease>({ clock, random, root: '/locks', queueMax });
  const begin = (client: ZkClient): void => {
    const titles: Titles = { owns, keeps, incarnations: () => client.children('/locks/.gateways'), cleared: async () => cleared() };
    coordinator.begin({ client, base: () => 0n, usable: () => client.state === 'connected' && contact.refusal === null, titles });
  };
  begin(first);
  const readiness = (): CoordinatorReadiness => ({ kind: 'zookeeper', state: 'connected', sessionMs: 15_000, proofAgeMs: 0, reason: null });
  return {
    coordinator,
    begin,
    seating: null,
    coordinatorId: () => null,
    readiness,
    refusal: () => contact.judged(),
    remainderMs: () => contact.remainderMs,
    onState: (listener) => contact.onState(listener),
    raiseAbove: () => undefined,
    rebase: async () => undefined,
    nodes: () => coordinator.nodes(1_000),
    removeOrphan: (node) => coordinator.removeOrphan(node),
  };
}

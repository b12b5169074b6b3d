import assert from 'node:assert/strict';
import { describe, it } from 'vitest';
import type { Resource } from '../../src/domain/resource.ts';
import { conflict } from '../../src/locks/decision.ts';
import type { Lease } from '../../src/locks/lease-record.ts';
import { unavailable } from '../../src/locks/zookeeper/contact-refusals.ts';
import { decodeState, type NodeState } from '../../src/locks/zookeeper/resource-node.ts';
import type { ZookeeperCoordinator } from '../../src/locks/zookeeper/zookeeper-coordinator.ts';
import { FakeClock, seededRandom, settle } from '../support/fake-clock.ts';
import { FakeEnsemble } from '../support/fake-ensemble.ts';
import { anybody, callerOf, LockLab, resource } from '../support/lock-lab.ts';
import { TIER } from '../support/tier.ts';
import { coordinationOver, ToldContact } from '../support/zookeeper-lab.ts';
import { PipedZk } from './piped-zk.ts';

const STEPS = 60;
/** Ten times what one takes where others work, too. */
const SEED_MS_MAX = 300;
const RESOURCES = [resource('a'), resource('b')] as const;
const root = callerOf('root', null, ['admin']);
/** What the pipes may pass on before somebody spins. */
const TURNS_MAX = 5_000;
const TICK_MS = 100;
/** In so many ticks everybody has had his turn. */
const TICKS_MAX = 300;
const nodeOf = ({ path }: Resource): string => `/locks/vol/${path}`;

interface Gateway {
  readonly lab: LockLab;
  readonly coordinator: ZookeeperCoordinator<Lease>;
  readonly contact: ToldContact;
  readonly begin: (client: PipedZk) => void;
  readonly leases: Set<string>;
  client: PipedZk;
}

/**
 * Two gateways at the same nodes, over pipes in which requests and replies go on one by one in an order drawn from the seed, that break with
 * whatever lies in them; that lose their session and have the next one; beside a contender of another recipe, an administrator who breaks locks, and
 * somebody who deletes children. After every step: no two conflicting holders. Then everybody is left alone: whoever waits gets in when his turn comes, nobody spins, and nothing is left at the nodes.
 */
class Schedule {
  readonly #next: () => number;
  readonly #clock = new FakeClock();
  readonly #ensemble = new FakeEnsemble(() => this.#clock.wallMs());
  readonly #gateways: readonly [Gateway, Gateway];
  /** Children that somebody deleted: whoever held by one may not know of it yet. */
  readonly #deleted = new Set<string>();
  readonly #open = new Set<Promise<void>>();
  /** Names and numbers of what was told. */
  readonly #tokens = new Set<string>();
  #foreign: string | null = null;
  #broken: unknown = null;
  /** Sessions that were given up, and that the ensemble has not ended yet. */
  readonly #past = new Set<string>();
  #sessions = 0;
  grants = 0;
  cuts = 0;
  losses = 0;

  constructor(seed: number) {
    this.#next = seededRandom(seed).next;
    for (const path of ['/locks', '/locks/.gateways', '/locks/vol']) this.#ensemble.create(path, new Uint8Array(), '0', false);
    this.#gateways = [this.#gateway(seed), this.#gateway(seed + 1)];
  }

  #gateway(seed: number): Gateway {
    const client = this.#session();
    const contact = new ToldContact();
    let made: Pick<Gateway, 'coordinator' | 'begin'> | null = null;
    const lab = new LockLab({
      seed,
      clock: this.#clock,
      coordination: (clock, queueMax) => {
        const coordination = coordinationOver({ client, clock, queueMax, contact, random: seededRandom(seed) });
        made = coordination;
        return coordination;
      },
    });
    if (made === null) throw new Error('the lock service made no coordinator');
    const { coordinator, begin }: Pick<Gateway, 'coordinator' | 'begin'> = made;
    return { lab, client, contact, coordinator, begin, leases: new Set() };
  }

  #session(): PipedZk {
    this.#sessions += 1;
    return new PipedZk(this.#ensemble, `0x${this.#sessions}`);
  }

  async run(): Promise<void> {
    for (let step = 0; step < STEPS; step += 1) {
      await this.#step();
      this.#check();
    }
    await this.#leftAlone();
    for (const { lab } of this.#gateways) lab.locks.stop();
  }

  async #step(): Promise<void> {
    const gateway = this.#pick(this.#gateways);
    const draw = this.#next();
    if (draw < 0.4) await this.#flow();
    else if (draw < 0.47) await this.#clock.advanceAsync(this.#next() * 400);
    else if (draw < 0.65) this.#acquire(gateway);
    else if (draw < 0.75) this.#release(gateway);
    else if (draw < 0.8) this.#convert(gateway);
    else if (draw < 0.86) this.#cut(gateway);
    else if (draw < 0.92) await this.#heal(gateway);
    else if (draw < 0.93) await this.#lose(gateway);
    else if (draw < 0.935) this.#expireOne();
    else if (draw < 0.94) this.#break(gateway);
    else if (draw < 0.96) this.#deleteChild();
    else this.#foreignComesOrGoes();
    await settle();
  }

  /** Some of what lies in the pipes goes on: here and there, or one gateway has time for much while the other stands still between two requests. */
  async #flow(): Promise<void> {
    const alone = this.#next() < 0.5 ? this.#pick(this.#gateways) : null;
    for (let turns = Math.ceil(this.#next() * (alone === null ? 12 : 40)); turns > 0; turns -= 1) {
      const { client } = alone ?? this.#pick(this.#gateways);
      if (this.#next() < 0.5) client.carry();
      else if (client.deliver()) await settle();
    }
  }

  #acquire({ lab, leases }: Gateway): void {
    const where = this.#next() < 0.15 ? RESOURCES : [this.#pick(RESOURCES)];
    const wish = {
      mode: this.#next() < 0.35 ? ('shared' as const) : ('exclusive' as const),
      ttlMs: this.#next() < 0.1 ? 1_500 : 3_600_000,
      waitMs: this.#next() < 0.2 ? 0 : Math.floor(this.#next() * 1_000),
      priority: Math.floor(this.#next() * 10),
      lockDelayMs: this.#next() < 0.1 ? 700 : 0,
    };
    this.#quietly(lab.acquire(where, wish, anybody).then(({ leaseId }) => void leases.add(leaseId)));
  }

  #convert({ lab, leases }: Gateway): void {
    const id = this.#pick([...leases]);
    const mode = this.#next() < 0.5 ? 'shared' : 'exclusive';
    const gone = new AbortController();
    this.#clock.after(500, () => gone.abort(new Error('gone')));
    if (id !== undefined) this.#quietly(lab.locks.service.convert(anybody, id, mode, gone.signal));
  }

  #release({ lab, leases }: Gateway): void {
    const id = this.#pick([...leases]);
    if (id !== undefined) this.#quietly(lab.release(id));
  }

  #cut({ client }: Gateway): void {
    if (client.state !== 'connected') return;
    this.cuts += 1;
    client.cut();
  }

  async #heal({ client, coordinator }: Gateway): Promise<void> {
    if (client.state === 'connected') return;
    client.heal();
    await settle();
    coordinator.resume();
  }

  /** LOST comes before the ensemble has given the session up; the next one begins meanwhile, or after. */
  async #lose(gateway: Gateway): Promise<void> {
    const { client, contact, coordinator } = gateway;
    this.losses += 1;
    client.cut();
    this.#past.add(client.session.id);
    contact.refusal = unavailable();
    coordinator.end();
    contact.becomes('lost', contact.refusal);
    await settle();
    if (this.#next() < 0.5) this.#expireOne();
    gateway.client = this.#session();
    gateway.begin(gateway.client);
    contact.becomes('connected', null);
  }

  #expireOne(): void {
    const [id] = this.#past;
    if (id === undefined) return;
    this.#past.delete(id);
    this.#ensemble.expire(id);
  }

  #break({ lab }: Gateway): void {
    const graceMs = this.#next() < 0.5 ? 0 : 300;
    this.#quietly(lab.locks.breakLock(root, { resource: this.#pick(RESOURCES), reason: 'x', graceMs }));
  }

  #deleteChild(): void {
    const node = nodeOf(this.#pick(RESOURCES));
    const name = this.#pick(this.#ensemble.children(node));
    if (name === undefined || `${node}/${name}` === this.#foreign) return;
    this.#deleted.add(`${node}/${name}`);
    this.#ensemble.remove(`${node}/${name}`, null);
    // Somebody who tidies up takes a node that says nothing, too.
    if (this.#ensemble.children(node).length === 0 && this.#stateOf(node)?.holders.length === 0 && this.#next() < 0.3)
      this.#ensemble.remove(node, null);
  }

  #foreignComesOrGoes(): void {
    const node = nodeOf(this.#pick(RESOURCES));
    if (this.#foreign !== null) this.#foreignGoes();
    else if (this.#ensemble.nodes.has(node)) this.#foreign = this.#ensemble.create(`${node}/_c_11111111-2222-lock-`, new Uint8Array(), '0x99', true);
  }

  #foreignGoes(): void {
    if (this.#foreign !== null && this.#ensemble.nodes.has(this.#foreign)) this.#ensemble.remove(this.#foreign, null);
    this.#foreign = null;
  }

  /** Nobody conflicts with anybody, at whichever gateway, but by a child that somebody deleted. */
  #check(): void {
    if (this.#broken !== null) throw this.#broken;
    for (const where of RESOURCES) {
      const holders = this.#gateways.flatMap(({ coordinator }) =>
        [...(coordinator.look(where.key)?.holders ?? [])].filter((holder) => !this.#deleted.has(coordinator.nodePath(holder, where))),
      );
      for (const [i, one] of holders.entries()) for (const other of holders.slice(i + 1)) assert.ok(!conflict(one.mode, other.mode), 'two hold');
    }
  }

  async #leftAlone(): Promise<void> {
    this.#foreignGoes();
    while (this.#past.size > 0) this.#expireOne();
    for (const gateway of this.#gateways) await this.#heal(gateway);
    for (let ticks = 0; ticks < TICKS_MAX; ticks += 1) {
      await this.#pump();
      this.#check();
      await this.#clock.advanceAsync(TICK_MS);
      if ((await this.#letGo()) === 0 && this.#open.size === 0 && this.#leftovers().length === 0) return;
    }
    assert.fail(`somebody waits for ever, or something was left: ${this.#leftovers().join(' ')}`);
  }

  /** All that lies in the pipes goes on, and what follows from it. */
  async #pump(): Promise<void> {
    let turns = 0;
    for (let moved = true; moved; ) {
      moved = false;
      for (const { client } of this.#gateways) {
        while (client.carry()) moved = true;
        while (client.deliver()) moved = true;
      }
      await settle();
      turns += 1;
      assert.ok(turns < TURNS_MAX, 'somebody spins');
    }
  }

  /** Whoever holds gives up. @returns how many wait or hold. */
  async #letGo(): Promise<number> {
    let there = 0;
    for (const { lab, leases } of this.#gateways) {
      for (const id of leases) {
        const { state, fencingToken, leaseRef, resources } = await lab.lease(id);
        if (state === 'held' && fencingToken !== null) {
          this.#told(leaseRef, fencingToken, resources);
          this.#quietly(lab.release(id));
        }
        if (state === 'held' || state === 'waiting') there += 1;
        else leases.delete(id);
      }
    }
    return there;
  }

  /** No number is given twice for a name. */
  #told(leaseRef: string, token: bigint, resources: readonly Resource[]): void {
    this.grants += 1;
    for (const { key } of resources) {
      assert.ok(!this.#tokens.has(`${key} ${token}`), `${leaseRef} has a number that was given before`);
      this.#tokens.add(`${key} ${token}`);
    }
  }

  #leftovers(): readonly string[] {
    const at = RESOURCES.flatMap((where) => {
      const children = this.#ensemble.children(nodeOf(where));
      const holders = this.#stateOf(nodeOf(where))?.holders ?? [];
      // One whose child is gone is taken out by whoever comes next.
      return [...children, ...holders.filter((holder) => children.includes(holder.node)).map(({ lease }) => lease)];
    });
    const lines = this.#gateways.flatMap(({ coordinator }) => [...coordinator.entries(0)].map(({ look }) => `line ${look.resource.path}`));
    return [...at, ...lines];
  }

  #stateOf(path: string): NodeState | null {
    const node = this.#ensemble.nodes.get(path);
    return node === undefined ? null : decodeState(node.data, this.#ensemble.stat(path));
  }

  #quietly(work: Promise<unknown>): void {
    const call: Promise<void> = work.then(
      () => undefined,
      (thrown: unknown) => {
        if (!(thrown instanceof Error) || (!('code' in thrown) && thrown.message !== 'gone')) this.#broken ??= thrown;
      },
    );
    this.#open.add(call);
    void call.finally(() => this.#open.delete(call));
  }

  #pick<T>(items: readonly [T, ...T[]]): T;
  #pick<T>(items: readonly T[]): T | undefined;
  #pick<T>(items: readonly T[]): T | undefined {
    return items[Math.floor(this.#next() * items.length)];
  }
}

describe('two gateways at the same nodes, over pipes that break', () => {
  it('never hold what the other one holds, lose nobody who waits, and leave nothing behind', {
    timeout: SEED_MS_MAX * TIER.brokenPipes,
  }, async () => {
    const from = TIER.freshSeeds ? Date.now() % 1_000_000_000 : 0;
    let [grants, cuts, losses] = [0, 0, 0];
    for (let seed = from; seed < from + TIER.brokenPipes; seed += 1) {
      const schedule = new Schedule(seed);
      try {
        await schedule.run();
      } catch (thrown) {
        throw new Error(`seed ${seed}`, { cause: thrown });
      }
      grants += schedule.grants;
      cuts += schedule.cuts;
      losses += schedule.losses;
    }
    console.log(`${TIER.brokenPipes} seeds: ${grants} grants, ${cuts} broken connections, ${losses} lost sessions`);
  });
});

import type { Clock, Random } from '../../domain/clock.ts';
import { asGatewayError, GatewayError } from '../../domain/errors.ts';
import type { CoordinatorReadiness } from '../../domain/health.ts';
import type { Coordination } from '../coordination.ts';
import type { Lease } from '../lease-record.ts';
import { Contact, type ContactState } from './contact.ts';
import { suspended, unavailable } from './contact-refusals.ts';
import { type Registration, raiseBase, register } from './registry.ts';
import { SessionProof } from './session-proof.ts';
import type { ZkClient, ZkSession } from './zk-client.ts';
import { ZookeeperCoordinator } from './zookeeper-coordinator.ts';

export interface ZookeeperCoordinationOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** A new session, or an earlier one that is resumed; ends the one before. */
  readonly open: (resume: ZkSession | null) => ZkClient;
  readonly root: string;
  readonly sessionMs: number;
  readonly gatewayUuid: string;
  readonly volumes: readonly string[];
  readonly queueMax: (volume: string) => number;
  /** What an earlier process of this gateway left. */
  readonly before: { readonly coordinatorId: string | null; readonly session: string | null; readonly highestToken: bigint | null };
  /** Durable facts: `zookeeper_session`, `coordinator_id`. */
  readonly remember: (name: string, value: string) => Promise<void>;
  readonly log: (detail: string) => void;
}

interface Live {
  readonly client: ZkClient;
  readonly contact: Contact;
  readonly proof: SessionProof;
  readonly coordinatorId: string;
}

export const SESSION_FACT = 'zookeeper_session';
export const COORDINATOR_FACT = 'coordinator_id';

/**
 * One session with the ensemble after the other: registered, proven, and given up when it can be proven no more (R12). A lost one
 * voids everything that was held through it before the next is begun.
 */
export class ZookeeperCoordination implements Coordination {
  readonly coordinator: ZookeeperCoordinator<Lease>;
  readonly seating = null;
  readonly #options: ZookeeperCoordinationOptions;
  readonly #listeners: ((state: ContactState) => void)[] = [];
  #live: Live | null = null;
  #state: ContactState = 'lost';
  /** Why nothing may be granted although there is contact: tokens could fall. */
  #distrust: string | null = null;
  #trusted: string | null;
  #stopped = false;

  constructor(options: ZookeeperCoordinationOptions) {
    const { clock, random, root, queueMax } = options;
    this.#options = options;
    this.#trusted = options.before.coordinatorId;
    this.coordinator = new ZookeeperCoordinator<Lease>({ clock, random, root, queueMax });
  }

  /** Resolves when registered. Rejects with `volume_unavailable`, or `coordinator_unavailable` after two session times. */
  async start(): Promise<void> {
    await this.#closeEarlier();
    const untilMs = this.#options.clock.monotonicMs() + 2 * this.#options.sessionMs;
    await this.#begin(untilMs);
  }

  readiness(): CoordinatorReadiness {
    return { kind: 'zookeeper', state: this.#live?.contact.state ?? 'lost', sessionMs: this.#options.sessionMs };
  }

  refusal(): GatewayError | null {
    const { contact } = this.#live ?? {};
    if (contact === undefined || contact.state === 'lost') return unavailable();
    if (!contact.usable) return suspended();
    return this.#distrust === null ? null : unavailable(this.#distrust);
  }

  remainderMs(): number {
    return this.#live?.contact.remainderMs ?? 0;
  }

  onState(listener: (state: ContactState) => void): void {
    this.#listeners.push(listener);
  }

  raiseAbove(): void {
    // Numbers are the ensemble's; whether they go on above what is known is judged at the registration.
  }

  async rebase(base: bigint): Promise<void> {
    const live = this.#live;
    if (live === null) throw unavailable();
    try {
      await raiseBase(live.client, this.#options.root, base);
    } catch (thrown) {
      throw new GatewayError('coordinator_unavailable', {
        detail: 'The base could not be written to the coordinator.',
        retryAfterMs: 5_000,
        cause: thrown,
      });
    }
    await this.#options.remember(COORDINATOR_FACT, live.coordinatorId);
    this.#trusted = live.coordinatorId;
    this.#distrust = null;
    this.coordinator.begin({ client: live.client, base, usable: () => this.#usableOver(live) });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    const live = this.#live;
    this.#retire();
    await live?.client.close();
  }

  /** The session of the process before us, so that nobody waits for our own past. */
  async #closeEarlier(): Promise<void> {
    const stored = parseSession(this.#options.before.session);
    if (stored === null) return;
    const client = this.#options.open(stored);
    await connected(client, this.#options.clock, this.#options.sessionMs);
    await client.close().catch((thrown: unknown) => this.#options.log(`the earlier session could not be closed: ${String(thrown)}`));
  }

  async #begin(untilMs: number): Promise<void> {
    const { clock, sessionMs } = this.#options;
    for (;;) {
      if (this.#stopped) return;
      try {
        await this.#beginOnce();
        return;
      } catch (thrown) {
        const error = thrown instanceof GatewayError ? thrown : unavailable(`The coordinator did not answer: ${String(thrown)}`);
        if (error.code !== 'coordinator_unavailable' || clock.monotonicMs() >= untilMs) throw error;
        this.#options.log(error.message);
        await new Promise<void>((resolve) => clock.after(sessionMs / 10, resolve));
      }
    }
  }

  async #beginOnce(): Promise<void> {
    const { clock, random, root, sessionMs, gatewayUuid, volumes, remember } = this.#options;
    const client = this.#options.open(null);
    await connected(client, clock, sessionMs);
    const { session } = client;
    if (session === null) throw unavailable('The coordinator could not be reached.');
    await remember(SESSION_FACT, `${session.id}:${session.password}:${session.timeoutMs}`);
    const provenMs = clock.monotonicMs();
    const registration = await register({ client, clock, random, root, gatewayUuid, volumes });
    await this.#judge(registration);
    const contact = new Contact({
      clock,
      sessionMs: Math.min(sessionMs, session.timeoutMs),
      provenMs,
      onState: (state) => this.#changed(live, state),
    });
    const proof = new SessionProof({ clock, client, path: registration.livePath, contact, sessionMs });
    const live: Live = { client, contact, proof, coordinatorId: registration.coordinatorId };
    this.#live = live;
    this.#state = 'connected';
    client.onState((state) => {
      if (this.#live !== live) return;
      if (state === 'connected') proof.now();
      else if (state === 'over') contact.lose();
      else contact.doubt();
    });
    this.coordinator.begin({ client, base: registration.base, usable: () => this.#usableOver(live) });
    proof.now();
  }

  #usableOver(live: Live): boolean {
    return this.#live === live && live.contact.usable && this.#distrust === null;
  }

  /** Tokens must never fall for a client: another coordinator, or one that was rebuilt or put back, needs a rebase first. */
  async #judge({ coordinatorId, base, zxid }: Registration): Promise<void> {
    const { highestToken } = this.#options.before;
    const another = this.#trusted !== coordinatorId && highestToken !== null;
    const behind = highestToken !== null && base + zxid <= highestToken;
    if (another || behind) {
      const what = another ? 'is not the one that gave the tokens so far' : 'is behind the tokens that it gave (it was rebuilt or put back)';
      this.#distrust = `The coordinator ${what}; nothing is granted until "fencegate fence rebase".`;
      this.#options.log(this.#distrust);
    } else if (this.#trusted !== coordinatorId) {
      await this.#options.remember(COORDINATOR_FACT, coordinatorId);
      this.#trusted = coordinatorId;
    }
  }

  #changed(live: Live, state: ContactState): void {
    if (this.#live !== live || this.#state === state) return;
    this.#state = state;
    if (state === 'reconnected') this.coordinator.resume();
    if (state === 'lost') this.#retire();
    for (const listener of this.#listeners) listener(state);
    if (state === 'lost' && !this.#stopped) void this.#anew(live.client);
  }

  /** Nothing is sent over it any more. */
  #retire(): void {
    this.#live?.contact.stop();
    this.#live?.proof.stop();
    this.#live = null;
    this.coordinator.end();
  }

  async #anew(old: ZkClient): Promise<void> {
    // It is lost already; that it could not be closed as well changes nothing.
    await old.close().catch(() => undefined);
    try {
      await this.#begin(Number.POSITIVE_INFINITY);
    } catch (thrown) {
      this.#options.log(`no session can be begun: ${asGatewayError(thrown).message}`);
      return;
    }
    for (const listener of this.#listeners) listener('reconnected');
  }
}

function connected(client: ZkClient, clock: Clock, withinMs: number): Promise<void> {
  if (client.state === 'connected' || client.state === 'over') return Promise.resolve();
  return new Promise((resolve) => {
    const late = clock.after(withinMs, resolve);
    client.onState((state) => {
      if (state !== 'connected' && state !== 'over') return;
      late.cancel();
      resolve();
    });
  });
}

function parseSession(text: string | null): ZkSession | null {
  const [id, password, timeoutMs] = (text ?? '').split(':');
  return id === undefined || password === undefined || timeoutMs === undefined ? null : { id, password, timeoutMs: Number(timeoutMs) };
}

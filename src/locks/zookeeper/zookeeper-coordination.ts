import type { CoordinatorNode } from '../../domain/administration.ts';
import type { Clock, Random } from '../../domain/clock.ts';
import { asGatewayError, GatewayError } from '../../domain/errors.ts';
import type { CoordinatorReadiness } from '../../domain/health.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { OwnerNames, VolumeTitle, VolumeTitles } from '../../domain/volume-title.ts';
import type { Coordination } from '../coordination.ts';
import type { Lease } from '../lease-record.ts';
import { Contact, type ContactState } from './contact.ts';
import { answered, suspended, unavailable, withoutAnswer } from './contact-refusals.ts';
import { ForwardOnly } from './forward-only.ts';
import { raiseBase, readIdentity } from './identity.ts';
import { Incarnations } from './incarnations.ts';
import { type Registration, register } from './registry.ts';
import { SessionProof } from './session-proof.ts';
import { Attempts, closedByResuming, connected, ENDLESS, NotReached, type Patience, parseSession, storedSession } from './session-start.ts';
import { SessionTitles } from './session-titles.ts';
import { TokenTrust } from './token-trust.ts';
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
  readonly queueMax: (volume: string) => number;
  /** What an earlier process of this gateway left. */
  readonly before: { readonly coordinatorId: string | null; readonly session: string | null };
  /** The highest token that the journal knows at this moment. */
  readonly highestToken: () => bigint | null;
  /** `null`: every volume; it was claimed through a session that is lost, or its title was taken away. */
  readonly onUntitled: (volume: string | null) => void;
  /** Durable facts: `zookeeper_session`, `coordinator_id`. */
  readonly remember: (name: string, value: string) => Promise<void>;
  readonly log: (detail: string) => void;
}

interface Live {
  readonly client: ZkClient;
  readonly contact: Contact;
  readonly proof: SessionProof;
  readonly titles: SessionTitles;
  readonly coordinatorId: string;
  base: bigint;
}

export const SESSION_FACT = 'zookeeper_session';
export const COORDINATOR_FACT = 'coordinator_id';

/**
 * One session with the ensemble after the other: registered, proven, and given up when it can be proven no more (R12). A lost one
 * voids everything that was held through it before the next is begun.
 */
export class ZookeeperCoordination implements Coordination, VolumeTitles {
  readonly coordinator: ZookeeperCoordinator<Lease>;
  readonly seating = null;
  readonly #options: ZookeeperCoordinationOptions;
  readonly #listeners: ((state: ContactState) => void)[] = [];
  #live: Live | null = null;
  #state: ContactState = 'lost';
  /** Ours, void, and perhaps still open at the ensemble: of the process before us, or lost. */
  #past: ZkSession | null;
  readonly #trust: TokenTrust;
  #stopped = false;

  constructor(options: ZookeeperCoordinationOptions) {
    const { clock, random, root, queueMax } = options;
    this.#options = options;
    this.#past = parseSession(options.before.session);
    const remember = (coordinatorId: string): Promise<void> => options.remember(COORDINATOR_FACT, coordinatorId);
    this.#trust = new TokenTrust({ before: options.before.coordinatorId, highestToken: options.highestToken, remember });
    this.coordinator = new ZookeeperCoordinator<Lease>({ clock, random, root, queueMax });
  }

  /**
   * Resolves when registered, or stopped. Rejects, with `coordinator_unavailable` for the most part, after two session times without a session;
   * `waits`: only when the ensemble refuses one for so long, however long no server answers.
   */
  start({ waits }: { readonly waits: boolean }): Promise<void> {
    const refusedMs = 2 * this.#options.sessionMs;
    return this.#begin({ forMs: waits ? Number.POSITIVE_INFINITY : refusedMs, refusedMs });
  }

  coordinatorId(): string | null {
    return this.#live?.coordinatorId ?? this.#trust.coordinatorId;
  }

  readiness(): CoordinatorReadiness {
    const contact = this.#live?.contact ?? null;
    const state = contact?.state ?? 'lost';
    const sessionMs = contact?.sessionMs ?? this.#options.sessionMs;
    return { kind: 'zookeeper', state, sessionMs, proofAgeMs: contact?.proofAgeMs ?? null, reason: this.#trust.reason };
  }

  refusal(): GatewayError | null {
    const { contact } = this.#live ?? {};
    if (contact === undefined || contact.state === 'lost') return unavailable();
    if (!contact.usable) return suspended();
    return this.#trust.reason === null ? null : unavailable(this.#trust.reason);
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
    const live = this.#living();
    try {
      live.base = await raiseBase(live.client, this.#options.root, base);
    } catch (cause) {
      throw new GatewayError('coordinator_unavailable', { detail: 'The base could not be written to the coordinator.', retryAfterMs: 5_000, cause });
    }
    await this.#trust.rebased(live.coordinatorId);
    this.coordinator.resume();
  }

  async nodes(): Promise<readonly CoordinatorNode[]> {
    // A session that is lost meanwhile has a finding of its own.
    return this.coordinator.nodes(LIMITS.doctorLocksMax).catch(() => []);
  }

  removeOrphan(node: CoordinatorNode): Promise<boolean> {
    return answered(this.coordinator.removeOrphan(node));
  }

  owner(): OwnerNames {
    const { coordinatorId } = this.#living();
    const { gatewayUuid } = this.#options;
    // The one that is trusted may have been made anew meanwhile, under another name: volumes still have the old one.
    return { gateway: gatewayUuid, now: coordinatorId, before: [gatewayUuid, ...this.#trust.before] };
  }

  async claim(volume: string, volumeUuid: string | null, how: 'plain' | 'adopt'): Promise<VolumeTitle> {
    const live = this.#living();
    const { titles } = live;
    const claimed = await answered(titles.claim({ volume, uuid: volumeUuid, how }));
    const { coordinatorId, base } = await answered(readIdentity(live.client, this.#options.root));
    if (coordinatorId !== live.coordinatorId) throw unavailable('The lock root was made anew; this session is of no use any more.');
    // Somebody who shares the coordinator may have rebased; whoever had the volume before us may have known.
    if (base > live.base) live.base = base;
    return {
      left: [...claimed.left.keys()],
      floor: this.#trust.reason === null ? live.base + claimed.zxid : null,
      published: (directory) => answered(titles.published(claimed, directory)),
      gone: (directory) => answered(titles.gone(claimed, directory)),
      opened: () => titles.opened(claimed),
    };
  }

  doubt(volume: string): string | null {
    const live = this.#live;
    if (live === null || live.contact.state === 'lost') return 'There is no session with the coordinator: it is not known whose the volume is now.';
    return live.titles.keeps(volume) ? null : 'It is not open yet in the present session with the coordinator.';
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    const live = this.#live;
    this.#retire();
    await live?.client.close();
  }

  async #begin(patience: Patience): Promise<void> {
    const { clock, sessionMs } = this.#options;
    const attempts = new Attempts(clock, patience);
    while (!this.#stopped) {
      try {
        await this.#beginOnce();
        return;
      } catch (thrown) {
        if (this.#stopped) return;
        const error = thrown instanceof GatewayError ? thrown : withoutAnswer(thrown);
        if (!attempts.goOn(thrown)) throw error;
        this.#options.log(error.message);
        await new Promise<void>((resolve) => clock.after(sessionMs / 10, resolve));
      }
    }
  }

  async #beginOnce(): Promise<void> {
    const { clock, random, root, sessionMs, gatewayUuid, open, remember } = this.#options;
    if (this.#past !== null) {
      // Its nodes would be in our own way for as long as the ensemble waits for it.
      await closedByResuming(open(this.#past), clock, sessionMs);
      this.#past = null;
      if (this.#stopped) return;
    }
    const client: ZkClient = new ForwardOnly(open(null), (why) => {
      this.#options.log(why);
      this.#trust.wentBack();
      if (this.#live?.client === client) this.#live.contact.lose();
    });
    await connected(client, clock, sessionMs);
    const { session } = client;
    if (session === null) throw client.state === 'over' ? unavailable('The coordinator refused a session.') : new NotReached();
    await remember(SESSION_FACT, storedSession(session));
    const provenMs = clock.monotonicMs();
    const registration = await register({ client, random, root, gatewayUuid });
    await this.#trust.judge(registration);
    if (this.#trust.reason !== null) this.#options.log(this.#trust.reason);
    // The server has the last word; a shorter time than was asked for is proven more often, a longer one is not believed.
    const countedMs = Math.min(sessionMs, session.timeoutMs);
    const contact = new Contact({
      clock,
      sessionMs: countedMs,
      provenMs,
      onState: (state) => this.#changed(live, state),
    });
    const proof = new SessionProof({ clock, client, path: registration.livePath, contact, sessionMs: countedMs });
    const titles = this.#titlesOver(client, registration);
    const live: Live = { client, contact, proof, titles, coordinatorId: registration.coordinatorId, base: registration.base };
    this.#live = live;
    this.#state = 'connected';
    client.onState((state) => {
      if (this.#live !== live) return;
      if (state === 'connected') proof.now();
      else if (state === 'over') contact.lose();
      else contact.doubt();
    });
    this.coordinator.begin({ client, base: () => live.base, usable: () => this.#usableOver(live), titles });
    proof.now();
  }

  #titlesOver(client: ZkClient, { incarnation }: Registration): SessionTitles {
    const { clock, random, root, gatewayUuid, onUntitled } = this.#options;
    const titles = new SessionTitles({
      client,
      clock,
      random,
      root,
      gatewayUuid,
      incarnations: new Incarnations(client, root),
      incarnation,
      onLost: (volume) => {
        if (this.#live?.titles === titles) onUntitled(volume);
      },
      onOpened: () => {
        if (this.#live?.titles === titles) this.coordinator.resume();
      },
    });
    return titles;
  }

  /** Throws `coordinator_unavailable`. */
  #living(): Live {
    const live = this.#live;
    if (live === null || live.contact.state === 'lost') throw unavailable();
    return live;
  }

  #usableOver(live: Live): boolean {
    return this.#live === live && live.contact.usable && this.#trust.reason === null;
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
    // Whether a server reads that is not known: the link may be what was lost.
    if (old.state !== 'over') this.#past = old.session;
    await old.close().catch(() => undefined);
    try {
      await this.#begin(ENDLESS);
    } catch (thrown) {
      this.#options.log(`no session can be begun: ${asGatewayError(thrown).message}`);
      return;
    }
    if (this.#stopped || this.#live === null) return;
    // The incarnation ended with its session: nothing is granted on a volume before it has the next one's directory.
    this.#options.onUntitled(null);
    for (const listener of this.#listeners) listener('reconnected');
  }
}

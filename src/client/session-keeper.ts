import type { ClientEventListener } from './client-events.ts';
import { CLIENT_LIMITS } from './client-limits.ts';
import type { ClientTimer } from './clock.ts';
import type { CreateSession, Heartbeat, Lease, Session } from './contract/answers.ts';
import { BOUNDS } from './contract/bounds.ts';
import { isFencegateError } from './errors.ts';
import type { HeldLease } from './held-lease.ts';
import { LeaseNews } from './lease-news.ts';
import { Leftovers } from './leftovers.ts';
import { LossWatch } from './loss-watch.ts';
import { jitteredDelayMs, retrying } from './retrying.ts';
import type { Transport } from './transport.ts';

/** Something that must be kept alive: a lease, or a place in a line. */
interface Kept {
  readonly ttlMs: number;
}

export interface SessionKeeperOptions {
  readonly sessionTtlMs: number | null;
  readonly clientId: string | null;
  readonly onEvent: ClientEventListener;
}

interface LiveSession {
  readonly id: string;
  readonly ttlMs: number;
  /** Before the request was sent that the gateway answered last. */
  renewedMs: number;
  /** How long from then on what the session holds certainly lives; 0 before the first heartbeat, which says so. */
  vouchedMs: number;
}

/**
 * The one session of a client (R15): made when it is first needed, kept by one heartbeat for everything that it holds, with jitter.
 * A heartbeat that fails is tried again until the leases end (case R22). Nothing here throws into nowhere: a loss is a state
 * and a signal (case R24).
 */
export class SessionKeeper {
  readonly leftovers: Leftovers;
  readonly #transport: Transport;
  readonly #options: SessionKeeperOptions;
  readonly #leases = new Set<HeldLease>();
  readonly #waiting = new Set<Kept>();
  /** Lost by our clock: when the gateway has each no more. */
  readonly #givenBack = new WeakMap<HeldLease, Promise<void>>();
  readonly #losses: LossWatch;
  #session: LiveSession | null = null;
  #making: Promise<LiveSession> | null = null;
  #timer: ClientTimer | null = null;
  #beating: Promise<void> | null = null;
  #failures = 0;

  constructor(transport: Transport, options: SessionKeeperOptions) {
    this.#transport = transport;
    this.#options = options;
    this.leftovers = new Leftovers(transport, () => {
      void this.leftovers.clear();
      this.#schedule();
    });
    const news = new LeaseNews({ transport, leases: this.#leases, onEvent: options.onEvent });
    this.#losses = new LossWatch(transport, {
      told: (event) => news.told(event),
      // What happened before the stream began is asked for.
      opened: (goesOn) => {
        void this.renewNow();
        if (!goesOn) void news.look();
      },
      gone: (sessionId) => this.gone(sessionId),
      refused: (error) => options.onEvent({ type: 'watch_refused', error }),
    });
  }

  /** The id of a live session that can carry a lease of `ttlMs`. Several callers at once get the same one (case R21). */
  async session(ttlMs: number | undefined): Promise<string> {
    this.#transport.closing.throwIfAborted();
    const { sessionTtlMs } = this.#options;
    const make = (): Promise<LiveSession> => {
      this.#making ??= this.#make(sessionTtlMs ?? Math.max(CLIENT_LIMITS.sessionTtlMs, ttlMs ?? 0));
      return this.#making;
    };
    const session = this.#live() ?? (await make());
    if (ttlMs !== undefined && ttlMs > session.ttlMs) throw new RangeError(`ttlMs ${ttlMs} is over the client's sessionTtlMs ${session.ttlMs}`);
    return session.id;
  }

  /** What a lease asks for when nobody says: the gateway's default, unless the session is shorter. */
  get defaultTtlMs(): number | null {
    const { sessionTtlMs } = this.#options;
    return sessionTtlMs !== null && sessionTtlMs < BOUNDS.leaseTtlMsDefault ? sessionTtlMs : null;
  }

  /** Of the last session that was made; `null` before the first. */
  get sessionId(): string | null {
    return this.#session?.id ?? null;
  }

  /** Until when a lease of the session certainly lives by the last heartbeat, which promises less than `ttlMs` where the coordinator does. */
  vouchedUntilMs(ttlMs: number): number {
    return this.#session === null ? Number.NEGATIVE_INFINITY : this.#session.renewedMs + Math.min(ttlMs, this.#session.vouchedMs);
  }

  join(lease: HeldLease): void {
    this.#leases.add(lease);
    lease.onEnd(() => this.#ended(lease));
    this.#followLosses();
    this.#schedule();
  }

  /**
   * Resolves when the gateway keeps a lease that ended here no more. Before that it takes a new request of this session for another hold on it, and
   * gives the token out again that whoever was told of the loss may still use.
   */
  givenBack(lease: HeldLease): Promise<void> {
    return this.#givenBack.get(lease) ?? Promise.resolve();
  }

  /** Keeps a place in line alive until the returned function is called. */
  waiting(ttlMs: number): () => void {
    const kept = { ttlMs };
    this.#waiting.add(kept);
    this.#schedule();
    return () => void this.#waiting.delete(kept);
  }

  /** The gateway says that there is no such session any more. */
  gone(sessionId: string): void {
    if (this.#session?.id !== sessionId) return;
    this.#session = null;
    for (const lease of [...this.#leases]) if (lease.sessionId === sessionId) lease.lose('session_ended', 'gateway');
  }

  /** One heartbeat now; resolves also when it fails. */
  async renewNow(): Promise<void> {
    // One that is under way began too early.
    await this.#beating;
    await this.#beat();
  }

  /** Ends the session, and with it every lease. Rejects when the gateway did not confirm it. */
  async close(): Promise<void> {
    if (this.#transport.closing.aborted) return;
    this.#transport.close();
    this.#timer?.cancel();
    this.#losses.rest();
    const session = this.#session;
    this.#session = null;
    for (const lease of [...this.#leases]) lease.released();
    if (session === null) return;
    const path = `/v1/sessions/${encodeURIComponent(session.id)}`;
    const end = { method: 'DELETE', path, limitMs: CLIENT_LIMITS.cleanUpMs, outlivesClose: true } as const;
    try {
      await this.#transport.repeated(end, { keyed: true, untilMs: this.#transport.clock.monotonicMs() + CLIENT_LIMITS.cleanUpMs });
    } catch (thrown) {
      if (!isFencegateError(thrown, 'session_not_found', 'session_ended')) throw thrown;
    }
  }

  #live(): LiveSession | null {
    const session = this.#session;
    if (session === null) return null;
    const { clock } = this.#transport;
    return clock.monotonicMs() < session.renewedMs + session.ttlMs - CLIENT_LIMITS.marginMsMax ? session : null;
  }

  async #make(ttlMs: number): Promise<LiveSession> {
    const { clientId } = this.#options;
    try {
      let sentMs = 0;
      const json: CreateSession = { ttl_ms: ttlMs, client_id: clientId };
      const signal = this.#transport.closing;
      const attempt = (): Promise<Session> => {
        sentMs = this.#transport.clock.monotonicMs();
        return this.#transport.json<Session>({ method: 'POST', path: '/v1/sessions', json, signal });
      };
      // A session that nobody learned of holds nothing, and ends by itself.
      const made = await retrying(this.#transport, attempt, { keyed: true, signal });
      this.#session = { id: made.session_id, ttlMs: made.ttl_ms, renewedMs: sentMs, vouchedMs: 0 };
      return this.#session;
    } finally {
      this.#making = null;
    }
  }

  #ended(lease: HeldLease): void {
    this.#leases.delete(lease);
    this.#followLosses();
    const { loss } = lease;
    if (loss === null) return;
    if (lease.lostBy === 'clock') this.#givenBack.set(lease, this.#giveBack(lease));
    this.#options.onEvent({ type: 'lease_lost', leaseRef: lease.leaseRef, resources: lease.resources, error: loss });
    this.#schedule();
  }

  /** The gateway may still keep it, and a heartbeat would renew it for nobody. Not before its time is over: until then whoever was told stops. */
  #giveBack(lease: HeldLease): Promise<void> {
    return new Promise((resolve) => {
      const signal = this.#transport.closing;
      const over = (): void => {
        signal.removeEventListener('abort', over);
        resolve();
      };
      signal.addEventListener('abort', over);
      const giveBack = (): void => {
        // It went with its session.
        if (this.#session?.id !== lease.sessionId || signal.aborted) over();
        else this.leftovers.addLease(lease.leaseId, over);
      };
      this.#transport.clock.after(lease.keptForMs, giveBack, true);
    });
  }

  #schedule(): void {
    this.#timer?.cancel();
    this.#timer = null;
    const everyMs = this.#everyMs();
    const session = this.#session;
    if (everyMs === null || session === null || this.#transport.closing.aborted) return;
    const { clock, random } = this.#transport;
    const delayMs =
      this.#failures > 0
        ? Math.min(everyMs, jitteredDelayMs(this.#failures, random, CLIENT_LIMITS.heartbeatRetryMs))
        : session.renewedMs + everyMs * (1 - random() / 4) - clock.monotonicMs();
    this.#timer = clock.after(Math.max(0, delayMs), () => void this.#beat());
  }

  /** `null`: there is nothing to keep alive. */
  #everyMs(): number | null {
    const ttls = [...[...this.#leases].map(({ livesForMs }) => livesForMs), ...[...this.#waiting].map(({ ttlMs }) => ttlMs)];
    if (ttls.length === 0 && this.leftovers.size === 0) return null;
    return Math.max(
      CLIENT_LIMITS.heartbeatMsMin,
      Math.min(this.#session?.ttlMs ?? CLIENT_LIMITS.sessionTtlMs, ...ttls) / CLIENT_LIMITS.heartbeatsPerTtl,
    );
  }

  /** One at a time. Never rejects. */
  #beat(): Promise<void> {
    this.#beating ??= this.#heartbeat().finally(() => {
      this.#beating = null;
      this.#schedule();
    });
    return this.#beating;
  }

  async #heartbeat(): Promise<void> {
    const session = this.#session;
    if (session === null) return;
    const { clock } = this.#transport;
    const sentMs = clock.monotonicMs();
    // Whoever woke up too late finds its leases lost here, before anything is renewed.
    const members = [...this.#leases].filter((lease) => lease.state === 'held');
    try {
      const path = `/v1/sessions/${encodeURIComponent(session.id)}/heartbeat`;
      const limitMs = Math.max(CLIENT_LIMITS.heartbeatMsMin, this.#everyMs() ?? 0);
      const answer = await this.#transport.json<Heartbeat>({ method: 'POST', path, limitMs });
      session.renewedMs = sentMs;
      session.vouchedMs = answer.expires_in_ms;
      this.#failures = 0;
      const lost = new Set(answer.lost);
      for (const lease of members) if (!lost.has(lease.leaseId)) lease.renewed(sentMs, Math.min(lease.ttlMs, answer.expires_in_ms));
      await Promise.all(members.filter(({ leaseId }) => lost.has(leaseId)).map((lease) => this.#lose(lease)));
      await this.leftovers.clear();
    } catch (thrown) {
      if (this.#transport.closing.aborted) return;
      if (isFencegateError(thrown, 'session_not_found', 'session_ended')) {
        this.gone(session.id);
        return;
      }
      this.#failures += 1;
      this.#options.onEvent({ type: 'renew_failed', failures: this.#failures, error: thrown });
    }
  }

  /** For as long as something is held that could be lost. */
  #followLosses(): void {
    const session = this.#session;
    const followed = session !== null && !this.#transport.closing.aborted && [...this.#leases].some(({ sessionId }) => sessionId === session.id);
    if (followed) this.#losses.follow(session.id);
    else this.#losses.rest();
  }

  /** Over at the gateway. Why, is asked for, but not for long. */
  async #lose(lease: HeldLease): Promise<void> {
    let reason = 'ended';
    try {
      const path = `/v1/leases/${encodeURIComponent(lease.leaseId)}`;
      const ended = await this.#transport.json<Lease>({ method: 'GET', path, limitMs: CLIENT_LIMITS.lossReasonMs });
      reason = ended.reason ?? ended.state;
    } catch {
      // The loss is certain; only its reason stays unknown.
    }
    lease.lose(reason, 'gateway');
  }
}

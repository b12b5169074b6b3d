import type { Clock, Random } from '../domain/clock.ts';
import { Later } from '../domain/later.ts';
import { LIMITS } from '../domain/limits.ts';
import type { LockService, SessionView } from '../domain/lock-api.ts';
import type { Caller } from '../domain/principal.ts';
import { within } from '../domain/within.ts';
import { checkText, sessionTtl } from './acquire-terms.ts';
import type { BrokenWrites } from './broken-writes.ts';
import type { Coordination } from './coordination.ts';
import { endKinds } from './end-kinds.ts';
import { endsSettled } from './ends-settled.ts';
import type { LeaseDesk } from './lease-desk.ts';
import type { End } from './lease-end.ts';
import type { LeaseLedger } from './lease-ledger.ts';
import type { Lease } from './lease-record.ts';
import type { LeaseTable } from './lease-table.ts';
import { endInDoubt, sessionEndNotReached } from './lock-refusals.ts';
import { placeAfter } from './place-cursor.ts';
import type { ReconnectGate } from './reconnect-gate.ts';
import { newBreakId, sessionRefOf } from './secret-id.ts';
import type { Session } from './session.ts';
import { type Sessions, sessionView } from './sessions.ts';

export interface SessionDeskDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly sessions: Sessions;
  readonly table: LeaseTable;
  readonly desk: LeaseDesk;
  readonly ledger: LeaseLedger;
  readonly gate: ReconnectGate;
  readonly writes: BrokenWrites;
  readonly coordination: Pick<Coordination, 'remainderMs'>;
}

/** A session that is over, while that is not durable: of itself, or of a lease that it had. */
interface UntoldEnd {
  readonly session: Session;
  readonly leases: readonly Lease[];
  /** Waits for what is under way, or tries again what the journal refused. */
  readonly told: () => Promise<void>;
  /** Settles with what is under way. */
  latest: Promise<void>;
  /** Nothing is under way: the journal refused it, or was not asked yet. */
  refused: boolean;
}

/** How a session ends. */
interface Over {
  /** By a client or an administrator. */
  readonly asked: boolean;
  /** Who ended it while it held nothing. */
  readonly forcedBy: Caller | null;
  /** That end with it. */
  readonly leases: readonly Lease[];
}

/** Sessions as clients use them: made, kept alive by one heartbeat for everything they hold, ended (R15). */
export class SessionDesk {
  readonly #deps: SessionDeskDeps;
  /** Ends that are not durable yet, by session ref. */
  readonly #untold = new Map<string, UntoldEnd>();
  readonly #again: Later;

  constructor(deps: SessionDeskDeps) {
    this.#deps = deps;
    this.#again = new Later(deps.clock, LIMITS.endRetryMs, () => void this.#tryAll());
    deps.desk.onSessionOver((session) => {
      if (!session.ended) void this.#over(session, { asked: false, forcedBy: null, leases: session.notYetOver });
    });
  }

  async create(caller: Caller, request: { readonly ttlMs: number | null; readonly clientId: string | null }): Promise<SessionView> {
    this.#deps.desk.now();
    checkText('client_id', request.clientId, LIMITS.clientIdBytesMax);
    const session = this.#deps.sessions.make(caller, sessionTtl(request.ttlMs), request.clientId ?? caller.clientId, false);
    try {
      await this.#deps.ledger.sessionMade(session);
    } catch (thrown) {
      this.#deps.sessions.remove(session);
      throw thrown;
    }
    session.renewedMs = this.#deps.clock.monotonicMs();
    this.#deps.table.deadlines.set(session, session.deadlineMs);
    return sessionView(session, session.renewedMs);
  }

  async heartbeat(caller: Caller, sessionId: string): Promise<{ readonly expiresInMs: number; readonly lost: readonly string[] }> {
    const nowMs = this.#deps.desk.now();
    const session = this.#deps.sessions.own(caller, sessionId);
    session.renewedMs = nowMs;
    this.#deps.gate.pass(session);
    await endsSettled([...session.losing], this.#deps.clock);
    // What is held is held no longer than the coordinator's proof goes, whatever is renewed here.
    return { expiresInMs: Math.min(session.ttlMs, this.#deps.coordination.remainderMs()), lost: session.lostSince(nowMs) };
  }

  async end(caller: Caller, sessionId: string): Promise<void> {
    this.#deps.desk.now();
    const session = await this.#unlessEnded(sessionRefOf(sessionId), () => this.#deps.sessions.own(caller, sessionId));
    await this.#end(session, caller, () => endKinds.sessionEnded(caller), null);
  }

  /** For an administrator, who knows only the ref: whoever holds it is fenced first. */
  async endByRef(caller: Caller, sessionRef: string): Promise<void> {
    this.#deps.desk.now();
    const session = await this.#unlessEnded(sessionRef, () => this.#deps.sessions.byRef(sessionRef));
    const { random, writes } = this.#deps;
    const forced = (lease: Lease): End => endKinds.sessionForced(caller, () => writes.detail(lease, 'session_ended'), newBreakId(random));
    await this.#end(session, caller, forced, caller);
  }

  /** One whose end may not be told yet stands in its place. */
  async page({ limit, cursor }: { readonly limit: number; readonly cursor: string | null }): ReturnType<LockService['sessionPage']> {
    const place = placeAfter(cursor);
    this.#deps.desk.now();
    await this.#endsSettled();
    const nowMs = this.#deps.desk.now();
    const live = this.#deps.sessions.after(place, limit + 1).map((session) => ({ place: session.place, view: sessionView(session, nowMs) }));
    const ending = [...this.#untold.values()]
      .filter(({ session }) => session.place > place)
      .map((end) => ({ place: end.session.place, view: this.#endingView(end, nowMs) }));
    const found = [...live, ...ending].sort((a, b) => a.place - b.place);
    const page = found.slice(0, limit);
    return { sessions: page.map(({ view }) => view), nextCursor: found.length > limit ? String(page.at(-1)?.place ?? 0) : null };
  }

  /** Resolves when the journal has taken or refused each end of a session once more. */
  async lastTry(): Promise<void> {
    await this.#tryAll();
    await Promise.allSettled([...this.#untold.values()].map(({ latest }) => latest));
  }

  untoldRefs(): readonly string[] {
    return [...this.#untold.keys()];
  }

  /** Ends that the journal refused are tried no more. */
  stop(): void {
    this.#again.stop();
  }

  #endingView({ session, leases }: UntoldEnd, nowMs: number): SessionView {
    const left = leases.filter((lease) => lease.phase !== 'over' || this.#deps.table.isUntold(lease));
    return { ...sessionView(session, nowMs), state: 'ending', expiresInMs: 0, leaseCount: left.length };
  }

  /** As in a look at locks: an end that the question itself found is told by its answer, unless the journal is slow. */
  async #endsSettled(): Promise<void> {
    if (this.#untold.size === 0) return;
    const pending = [...this.#untold.values()].map(({ latest }) => latest);
    await within(this.#deps.clock, LIMITS.endsAwaitedMs, Promise.allSettled(pending));
  }

  /** Answered when all of it is durable; a commit section may delay that. */
  async #end(session: Session, caller: Caller, endOf: (lease: Lease) => End, forcedBy: Caller | null): Promise<void> {
    const { sessionRef, implied } = session.terms;
    const leases = session.notYetOver;
    const holdsNone = leases.every(({ phase }) => phase !== 'held');
    const how = { asked: true, forcedBy: holdsNone ? forcedBy : null, leases };
    // One that a lease made would be over with its last lease, and nobody would wait for the others.
    const over = implied ? this.#over(session, how) : null;
    // Whoever waits is in nobody's way, so there is nothing to break.
    const waitEnd = forcedBy === null ? endKinds.cancelled(caller) : endKinds.cancelledFor(forcedBy, 'session_ended');
    this.#deps.desk.decide(leases.map((lease) => ({ lease, end: lease.phase === 'held' ? endOf(lease) : waitEnd })));
    await this.#answered(sessionRef, over ?? this.#over(session, how));
  }

  /** Who ends it once more is told that it has ended when that may be told. */
  async #unlessEnded(sessionRef: string, find: () => Session): Promise<Session> {
    try {
      return find();
    } catch (thrown) {
      await this.#answered(sessionRef, this.#untold.get(sessionRef)?.told());
      throw thrown;
    }
  }

  /**
   * Resolves when the end of a session that has ended may be told; rejects when the journal refused it, and after a moment when that takes
   * longer, for others may be answered together with who asks.
   */
  async endTold(sessionRef: string): Promise<void> {
    await this.#toldWithin(LIMITS.endsAwaitedMs, sessionRef, this.#untold.get(sessionRef)?.told());
  }

  async #toldWithin(ms: number, sessionRef: string, told: Promise<void> | undefined): Promise<void> {
    if (told === undefined || (await within(this.#deps.clock, ms, told)) !== 'late') return;
    const pinned = this.#untold.get(sessionRef)?.leases.some(({ phase }) => phase !== 'over') === true;
    throw sessionEndNotReached(pinned);
  }

  /** To whoever asked for the end. */
  async #answered(sessionRef: string, told: Promise<void> | undefined): Promise<void> {
    try {
      await this.#toldWithin(LIMITS.commitDeadlineMs, sessionRef, told);
    } catch (thrown) {
      throw endInDoubt(thrown, { session_ref: sessionRef });
    }
  }

  /** Takes effect at once. The promise is kept when that may be told, of the session and of its leases; nobody need wait for it. */
  #over(session: Session, { asked, forcedBy, leases }: Over): Promise<void> {
    const { sessionRef, implied } = session.terms;
    if (session.ended) return this.#untold.get(sessionRef)?.told() ?? Promise.resolve();
    this.#deps.sessions.remove(session, asked);
    this.#deps.table.deadlines.remove(session);
    const begin = (): Promise<void> => {
      const begun = this.#deps.ledger.sessionEnded(session, forcedBy);
      begun.catch(() => {
        own = null;
      });
      return begun;
    };
    // One that a lease made ends in the unit of its last lease. That may have none: a wait that is withdrawn.
    let own: Promise<void> | null = null;
    const attempt = async (): Promise<void> => {
      end.refused = false;
      own ??= implied ? Promise.resolve() : begin();
      try {
        await Promise.all([own, ...leases.map((lease) => this.#deps.desk.endTold(lease))]);
        if (implied && !session.endCarried) await begin();
        this.#untold.delete(sessionRef);
      } catch (thrown) {
        end.refused = true;
        this.#again.ask();
        throw thrown;
      }
    };
    const told = (): Promise<void> => {
      if (!end.refused) return end.latest;
      end.latest = attempt();
      // Nobody need hear of a refusal: it is tried again by itself.
      end.latest.catch(() => undefined);
      return end.latest;
    };
    const end: UntoldEnd = { session, leases, told, latest: Promise.resolve(), refused: true };
    if (this.#untold.size < LIMITS.endedSessionsMax) this.#untold.set(sessionRef, end);
    return told();
  }

  /** Some at a time, for as long as the journal takes them; the first refusal puts the rest off. */
  async #tryAll(): Promise<void> {
    const ends = [...this.#untold.values()].filter(({ refused }) => refused);
    for (let i = 0; i < ends.length && !this.#again.stopped; i += LIMITS.endsPerUnitMax) {
      const tried = await Promise.allSettled(ends.slice(i, i + LIMITS.endsPerUnitMax).map(({ told }) => told()));
      if (tried.some(({ status }) => status === 'rejected')) return;
    }
  }
}

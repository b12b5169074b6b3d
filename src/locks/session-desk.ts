import type { Clock } from '../domain/clock.ts';
import { LIMITS } from '../domain/limits.ts';
import type { LockService, SessionView } from '../domain/lock-api.ts';
import type { Caller } from '../domain/principal.ts';
import { checkText, sessionTtl } from './acquire-terms.ts';
import { endKinds } from './end-kinds.ts';
import { endsSettled } from './ends-settled.ts';
import type { LeaseDesk } from './lease-desk.ts';
import type { LeaseLedger } from './lease-ledger.ts';
import type { End, Lease } from './lease-record.ts';
import type { LeaseTable } from './lease-table.ts';
import { endInDoubt } from './lock-refusals.ts';
import { placeAfter } from './place-cursor.ts';
import type { ReconnectGate } from './reconnect-gate.ts';
import { sessionRefOf } from './secret-id.ts';
import type { Session } from './session.ts';
import { type Sessions, sessionView } from './sessions.ts';

export interface SessionDeskDeps {
  readonly clock: Clock;
  readonly sessions: Sessions;
  readonly table: LeaseTable;
  readonly desk: LeaseDesk;
  readonly ledger: LeaseLedger;
  readonly gate: ReconnectGate;
}

/** Sessions as clients use them: made, kept alive by one heartbeat for everything they hold, ended (R15). */
export class SessionDesk {
  readonly #deps: SessionDeskDeps;
  /** Ends that are not durable yet, by session ref; each waits for its own, or tries it again. */
  readonly #untold = new Map<string, () => Promise<void>>();

  constructor(deps: SessionDeskDeps) {
    this.#deps = deps;
    deps.desk.onSessionOver((session) => {
      if (!session.ended) void this.#over(session, null);
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
    return { expiresInMs: session.ttlMs, lost: session.lostSince(nowMs) };
  }

  async end(caller: Caller, sessionId: string): Promise<void> {
    this.#deps.desk.now();
    const session = await this.#unlessEnded(sessionRefOf(sessionId), () => this.#deps.sessions.own(caller, sessionId));
    await this.#end(session, endKinds.sessionEnded(caller));
  }

  /** For an administrator, who knows only the ref: whoever holds it is fenced first. */
  async endByRef(caller: Caller, sessionRef: string): Promise<void> {
    this.#deps.desk.now();
    const session = await this.#unlessEnded(sessionRef, () => this.#deps.sessions.byRef(sessionRef));
    await this.#end(session, endKinds.sessionForced(caller));
  }

  views(): readonly SessionView[] {
    const nowMs = this.#deps.desk.now();
    return [...this.#deps.sessions.all()].map((session) => sessionView(session, nowMs));
  }

  page({ limit, cursor }: { readonly limit: number; readonly cursor: string | null }): ReturnType<LockService['sessionPage']> {
    const nowMs = this.#deps.desk.now();
    const found = this.#deps.sessions.after(placeAfter(cursor), limit + 1);
    const page = found.slice(0, limit);
    const nextCursor = found.length > limit ? String(page.at(-1)?.place ?? 0) : null;
    return { sessions: page.map((session) => sessionView(session, nowMs)), nextCursor };
  }

  /** Answered when all of it is durable; a commit section may delay that. */
  async #end(session: Session, end: End): Promise<void> {
    const leases = [...session.leases];
    this.#deps.desk.decide(
      leases.map((lease) => ({ lease, end: lease.phase === 'held' || end.state === 'broken' ? end : endKinds.cancelled(end.caller) })),
    );
    const forcedBy = leases.length === 0 && end.state === 'broken' ? end.caller : null;
    await answered(session.terms.sessionRef, this.#over(session, forcedBy, leases));
  }

  /** Who ends it once more is told that it has ended when that may be told. */
  async #unlessEnded(sessionRef: string, find: () => Session): Promise<Session> {
    try {
      return find();
    } catch (thrown) {
      await answered(sessionRef, this.endTold(sessionRef));
      throw thrown;
    }
  }

  /** Resolves when the end of a session that has ended may be told. */
  async endTold(sessionRef: string): Promise<void> {
    await this.#untold.get(sessionRef)?.();
  }

  /** Takes effect at once. The promise is kept when that may be told, of the session and of its leases; nobody need wait for it. */
  #over(session: Session, forcedBy: Caller | null, leases: readonly Lease[] = [...session.leases]): Promise<void> {
    if (session.ended) return this.endTold(session.terms.sessionRef);
    this.#deps.sessions.remove(session);
    this.#deps.table.deadlines.remove(session);
    // The session that was made for one lease ends in the same unit as that lease, and is known by it.
    let own: Promise<void> | null = session.terms.implied ? Promise.resolve() : this.#deps.ledger.sessionEnded(session, forcedBy);
    const told = async (): Promise<void> => {
      own ??= this.#deps.ledger.sessionEnded(session, forcedBy);
      try {
        await Promise.all([own, ...leases.map((lease) => this.#deps.desk.endTold(lease))]);
        this.#untold.delete(session.terms.sessionRef);
      } catch (thrown) {
        own = null;
        throw thrown;
      }
    };
    if (this.#untold.size < LIMITS.endedSessionsMax) this.#untold.set(session.terms.sessionRef, told);
    const first = told();
    // Should the journal refuse and nobody ask again, the session comes back at a restart, holding nothing, and ends by itself.
    first.catch(() => undefined);
    return first;
  }
}

/** To whoever asked for the end. */
async function answered(sessionRef: string, end: Promise<void>): Promise<void> {
  try {
    await end;
  } catch (thrown) {
    throw endInDoubt(thrown, { session_ref: sessionRef });
  }
}

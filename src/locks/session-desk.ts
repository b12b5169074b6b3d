import type { Clock } from '../domain/clock.ts';
import { LIMITS } from '../domain/limits.ts';
import type { LockService, SessionView } from '../domain/lock-api.ts';
import type { Caller } from '../domain/principal.ts';
import { checkText, sessionTtl } from './acquire-terms.ts';
import { endKinds } from './end-kinds.ts';
import type { LeaseDesk } from './lease-desk.ts';
import type { LeaseLedger } from './lease-ledger.ts';
import type { End } from './lease-record.ts';
import type { LeaseTable } from './lease-table.ts';
import { placeAfter } from './place-cursor.ts';
import type { ReconnectGate } from './reconnect-gate.ts';
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
    deps.desk.onSessionOver((session) => this.#over(session));
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

  heartbeat(caller: Caller, sessionId: string): { readonly expiresInMs: number; readonly lost: readonly string[] } {
    const nowMs = this.#deps.desk.now();
    const session = this.#deps.sessions.own(caller, sessionId);
    session.renewedMs = nowMs;
    this.#deps.gate.pass(session);
    return { expiresInMs: session.ttlMs, lost: session.lostSince(nowMs) };
  }

  async end(caller: Caller, sessionId: string): Promise<void> {
    this.#deps.desk.now();
    await this.#end(this.#deps.sessions.own(caller, sessionId), endKinds.sessionEnded(caller));
  }

  /** For an administrator, who knows only the ref: whoever holds it is fenced first. */
  async endByRef(caller: Caller, sessionRef: string): Promise<void> {
    this.#deps.desk.now();
    await this.#end(this.#deps.sessions.byRef(sessionRef), endKinds.sessionForced(caller));
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
    let own: Promise<void> | null = this.#over(session, forcedBy);
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
    await told();
  }

  /** Resolves when the end of a session that has ended may be told. */
  async endTold(sessionRef: string): Promise<void> {
    await this.#untold.get(sessionRef)?.();
  }

  #over(session: Session, forcedBy: Caller | null = null): Promise<void> {
    if (session.ended) return Promise.resolve();
    this.#deps.sessions.remove(session);
    this.#deps.table.deadlines.remove(session);
    // The session that was made for one lease ends in the same unit as that lease.
    if (session.terms.implied) return Promise.resolve();
    const ended = this.#deps.ledger.sessionEnded(session, forcedBy);
    // Should the journal refuse, the session comes back at a restart, holding nothing, and ends by itself.
    ended.catch(() => undefined);
    return ended;
  }
}

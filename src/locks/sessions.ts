import { type Clock, type Random, rfc3339 } from '../domain/clock.ts';
import { type GatewayError, refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import type { SessionView } from '../domain/lock-api.ts';
import type { Caller, Principal } from '../domain/principal.ts';
import { newSessionId, sessionRefOf } from './secret-id.ts';
import { Session, type SessionTerms } from './session.ts';

export interface SessionsDeps {
  readonly clock: Clock;
  readonly random: Random;
}

/** All live sessions by their refs, how many each principal has, and for an hour those that ended. */
export class Sessions {
  readonly #deps: SessionsDeps;
  readonly #byRef = new Map<string, Session>();
  readonly #perPrincipal = new Map<string, number>();
  readonly #ended = new Map<string, { readonly principal: string; readonly atMs: number }>();
  #made = 0;

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
  }

  /** Throws `too_many_sessions`. */
  make(caller: Caller, ttlMs: number, clientId: string | null, implied: boolean): Session {
    const principal = caller.principal.name;
    if ((this.#perPrincipal.get(principal) ?? 0) >= LIMITS.sessionsPerPrincipalMax) {
      throw refuse('too_many_sessions', `A principal has at most ${LIMITS.sessionsPerPrincipalMax} sessions.`, {
        sessions_max: LIMITS.sessionsPerPrincipalMax,
      });
    }
    const sessionId = newSessionId(this.#deps.random);
    const createdAt = rfc3339(this.#deps.clock.wallMs());
    return this.add({ sessionId, sessionRef: sessionRefOf(sessionId), principal, clientId, ttlMs, createdAt, implied });
  }

  add(terms: SessionTerms): Session {
    this.#made += 1;
    const session = new Session(terms, this.#made, this.#deps.clock.monotonicMs());
    this.#byRef.set(terms.sessionRef, session);
    this.#perPrincipal.set(terms.principal, (this.#perPrincipal.get(terms.principal) ?? 0) + 1);
    return session;
  }

  /** Throws `session_not_found`, `session_ended`, or `forbidden` when it is somebody else's. */
  own(caller: Caller, sessionId: string): Session {
    const sessionRef = sessionRefOf(sessionId);
    const owner = this.#byRef.get(sessionRef)?.terms.principal ?? this.#ended.get(sessionRef)?.principal;
    if (owner !== undefined && !owns(caller.principal, owner)) throw notSessionOwner();
    return this.byRef(sessionRef);
  }

  /** A caller who says no label of its own has that of the session that it names, in its leases and in their records. */
  labelled(caller: Caller, sessionId: string | null): Caller {
    const named = sessionId === null || caller.clientId !== null ? null : this.find(sessionRefOf(sessionId));
    return named === null || !owns(caller.principal, named.terms.principal) ? caller : { ...caller, clientId: named.terms.clientId };
  }

  /** Throws `session_not_found`, `session_ended`. */
  byRef(sessionRef: string): Session {
    const session = this.#byRef.get(sessionRef);
    if (session !== undefined) return session;
    const ended = this.#ended.get(sessionRef);
    if (ended !== undefined && this.#deps.clock.monotonicMs() - ended.atMs <= LIMITS.leaseEndedKeptMs) throw sessionEnded();
    throw refuse('session_not_found', 'There is no such session.');
  }

  find(sessionRef: string): Session | null {
    return this.#byRef.get(sessionRef) ?? null;
  }

  /** Idempotent. One that a lease made ends with every last lease, and is remembered only when somebody asked for its end. */
  remove(session: Session, asked = false): void {
    const { sessionRef, principal, implied } = session.terms;
    if (session.ended) return;
    session.ended = true;
    this.#byRef.delete(sessionRef);
    const rest = (this.#perPrincipal.get(principal) ?? 1) - 1;
    if (rest > 0) this.#perPrincipal.set(principal, rest);
    else this.#perPrincipal.delete(principal);
    if (implied && !asked) return;
    const nowMs = this.#deps.clock.monotonicMs();
    this.#ended.set(sessionRef, { principal, atMs: nowMs });
    for (const [ref, { atMs }] of this.#ended) {
      if (this.#ended.size <= LIMITS.endedSessionsMax && nowMs - atMs <= LIMITS.leaseEndedKeptMs) return;
      this.#ended.delete(ref);
    }
  }

  all(): Iterable<Session> {
    return this.#byRef.values();
  }

  /** The next `count` after a place, in the order in which they came to be. */
  after(place: number, count: number): readonly Session[] {
    const found: Session[] = [];
    for (const session of this.#byRef.values()) {
      if (session.place <= place) continue;
      found.push(session);
      if (found.length >= count) break;
    }
    return found;
  }
}

/** Without authentication everybody who has the id; with it, the principal who made it. */
export function owns(principal: Principal, owner: string): boolean {
  return !principal.authenticated || principal.name === owner;
}

export function sessionEnded(): GatewayError {
  return refuse('session_ended', 'The session has ended, and all its leases with it.');
}

export function notSessionOwner(): GatewayError {
  return refuse('forbidden', 'The session belongs to somebody else.');
}

export function sessionView(session: Session, nowMs: number): SessionView {
  const { sessionId, sessionRef, principal, clientId } = session.terms;
  return {
    sessionId,
    sessionRef,
    principal,
    clientId,
    state: 'live',
    ttlMs: session.ttlMs,
    expiresInMs: Math.max(0, session.deadlineMs - nowMs),
    leaseCount: session.leases.size,
  };
}

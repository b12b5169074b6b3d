import assert from 'node:assert/strict';
import { asGatewayError } from '../../src/domain/errors.ts';
import type { LeaseView } from '../../src/domain/lock-api.ts';
import type { Resource } from '../../src/domain/resource.ts';
import { anybody, type LockLab, resource } from '../support/lock-lab.ts';

const TTL_MS = 5_000;
/** A heartbeat waits for nothing but the ends that it finds itself, and for those not long. */
const ANSWERED_MS = 1_000;
const OVER = new Set(['session_ended', 'session_not_found']);

/**
 * A client that never pauses: whatever else it does, its session is heard of before each time to live is over. In half of the schedules a
 * lease made that session. What it was told it holds is lost to nobody but itself and the administrator, and each of its heartbeats is answered.
 */
export class Keeper {
  readonly #next: () => number;
  readonly #shared: readonly Resource[];
  /** A lease makes its session; otherwise it makes one itself. */
  readonly #implied: boolean;
  readonly #run: (work: Promise<unknown>) => void;
  /** Which process it talks to: what an earlier one would say is not delivered. */
  #process = 0;
  #sessionId: string | null = null;
  /** Asked for its session, and not answered yet. */
  #beginning = false;
  /** What it was told it holds and has not given back, by ref. */
  #kept = new Map<string, LeaseView>();
  #waiting: LeaseView[] = [];
  /** The heartbeat that is not answered yet. */
  #beat: { readonly sentMs: number; readonly sessionId: string } | null = null;
  /** Waits that a restart ended, which the next heartbeat must tell of. */
  #mustTell = new Set<string>();
  beats = 0;
  tellings = 0;

  constructor(next: () => number, shared: readonly Resource[], run: (work: Promise<unknown>) => void) {
    this.#next = next;
    this.#shared = shared;
    this.#implied = next() < 0.5;
    this.#run = run;
  }

  /** Before time goes on by less than a time to live. */
  keep(lab: LockLab): void {
    const sessionId = this.#sessionId;
    if (sessionId === null || this.#beat !== null) return;
    this.#beat = { sentMs: lab.clock.monotonicMs(), sessionId };
    this.#ask(
      lab.locks.service.heartbeat(anybody, sessionId),
      ({ lost }) => {
        this.#beat = null;
        this.#told(lab, lost);
      },
      (code) => {
        this.#beat = null;
        this.#refused(lab, sessionId, code);
      },
    );
  }

  /** Something of what a client does with its session. */
  act(lab: LockLab): void {
    const draw = this.#next();
    if (this.#sessionId === null) this.#begin(lab);
    else if (draw < 0.4) this.#acquire(lab, this.#sessionId);
    else if (draw < 0.7) this.#giveBack(lab);
    else if (draw < 0.85) this.#renewOne(lab);
    else this.#pollOne(lab);
  }

  /** What the present process was asked is answered by nobody, and what it had let wait is over. */
  died({ journal }: LockLab): void {
    this.#process += 1;
    this.#beat = null;
    this.#beginning = false;
    this.#mustTell = new Set([...journal.waits.values()].flatMap((wait) => (wait.sessionId === this.#sessionId ? [wait.leaseId] : [])));
    this.#waiting = [];
  }

  check({ journal, clock }: LockLab): void {
    for (const [leaseRef, { leaseId }] of this.#kept) {
      const ended = journal.ended.get(leaseRef);
      assert.ok(ended === undefined || ended.reason === 'broken', `a kept lease ended: ${ended?.reason}`);
      if (ended !== undefined) this.#forget(leaseId);
    }
    if (this.#beat === null || clock.monotonicMs() - this.#beat.sentMs < ANSWERED_MS) return;
    const { sessionId } = this.#beat;
    const live = [...journal.leases.values()].some((lease) => lease.sessionId === sessionId);
    assert.ok(!live, 'a heartbeat of a session that holds something is not answered');
  }

  #begin(lab: LockLab): void {
    if (this.#beginning) return;
    this.#beginning = true;
    const began = (sessionId: string): void => {
      this.#beginning = false;
      this.#sessionId = sessionId;
    };
    const failed = (): void => {
      this.#beginning = false;
    };
    if (!this.#implied) {
      this.#ask(lab.locks.service.createSession(anybody, { ttlMs: TTL_MS, clientId: 'keeper' }), ({ sessionId }) => began(sessionId), failed);
      return;
    }
    const first = (lease: LeaseView): void => {
      began(lease.sessionId ?? '');
      this.#learn(lease);
    };
    this.#ask(lab.acquire(resource('keeper'), { ttlMs: TTL_MS }), first, failed);
  }

  #acquire(lab: LockLab, sessionId: string): void {
    const names = [...this.#shared, resource('keeper'), resource('other')];
    const where = names[Math.floor(this.#next() * names.length)] ?? resource('other');
    const mode = this.#next() < 0.3 ? 'shared' : 'exclusive';
    const waitMs = this.#next() < 0.5 ? 0 : Math.floor(this.#next() * 2_000);
    this.#ask(lab.acquire(where, { sessionId, mode, waitMs, ttlMs: TTL_MS }), (lease) => this.#learn(lease));
  }

  /** From the moment when it asks, the end is its own doing. */
  #giveBack(lab: LockLab): void {
    const lease = this.#any();
    if (lease === undefined) return;
    this.#forget(lease.leaseId);
    this.#ask(lab.release(lease.leaseId, { all: true }));
  }

  #renewOne(lab: LockLab): void {
    const lease = this.#any();
    if (lease !== undefined) this.#ask(lab.locks.service.renew(anybody, lease.leaseId));
  }

  #pollOne(lab: LockLab): void {
    const lease = this.#waiting.shift();
    if (lease !== undefined) this.#ask(lab.lease(lease.leaseId), (seen) => this.#learn(seen));
  }

  #any(): LeaseView | undefined {
    const all = [...this.#kept.values(), ...this.#waiting];
    return all[Math.floor(this.#next() * all.length)];
  }

  #ask<T>(work: Promise<T>, answered: (answer: T) => void = () => undefined, refused: (code: string) => void = () => undefined): void {
    const process = this.#process;
    const ifAlive = (tell: () => void): void => {
      if (process === this.#process) tell();
    };
    this.#run(
      work.then(
        (answer) => ifAlive(() => answered(answer)),
        (thrown: unknown) => ifAlive(() => refused(asGatewayError(thrown).code)),
      ),
    );
  }

  #learn(lease: LeaseView): void {
    if (lease.sessionId !== this.#sessionId) return;
    if (lease.state === 'held') this.#kept.set(lease.leaseRef, lease);
    else if (lease.state === 'waiting') this.#waiting.push(lease);
  }

  #forget(leaseId: string): void {
    for (const [leaseRef, lease] of this.#kept) if (lease.leaseId === leaseId) this.#kept.delete(leaseRef);
    this.#waiting = this.#waiting.filter((lease) => lease.leaseId !== leaseId);
  }

  #told({ journal }: LockLab, lost: readonly string[]): void {
    this.beats += 1;
    for (const leaseId of this.#mustTell) assert.ok(lost.includes(leaseId), 'a wait that a restart ended is not told');
    this.tellings += this.#mustTell.size;
    this.#mustTell.clear();
    for (const [leaseRef, { leaseId }] of this.#kept) if (lost.includes(leaseId)) assert.equal(journal.ended.get(leaseRef)?.reason, 'broken');
  }

  /** Only one that a lease made can be over: with the last of its leases. */
  #refused({ journal }: LockLab, sessionId: string, code: string): void {
    const holds = [...journal.leases.values()].some((lease) => lease.sessionId === sessionId);
    assert.ok(this.#implied && !(OVER.has(code) && holds), `the session of a keeper: ${code}`);
    if (!OVER.has(code) || this.#sessionId !== sessionId) return;
    this.#sessionId = null;
    this.#mustTell.clear();
    this.#kept.clear();
    this.#waiting = [];
  }
}

import { type Clock, rfc3339 } from '../domain/clock.ts';
import type { DeadlockStep } from '../domain/deadlock.ts';
import { LIMITS } from '../domain/limits.ts';
import type { LockEvent, LockEventType } from '../domain/lock-events.ts';
import type { Resource } from '../domain/resource.ts';
import type { End } from './lease-end.ts';
import type { Lease } from './lease-record.ts';

/** An event with what a watch is chosen by; the session's ref never leaves the gateway with it. */
export interface RingEvent {
  readonly event: LockEvent;
  /** `null`: it concerns everything. */
  readonly resource: Resource | null;
  readonly sessionRef: string | null;
}

export type EventTopic = `resource ${string}` | `session ${string}` | 'all';

const END_EVENTS = { released: 'released', expired: 'expired', broken: 'broken', lost: 'lost', cancelled: 'cancelled' } as const;

/** The last transitions, numbered; and who wants to hear of new ones, by topic, so that an event costs only those it concerns. */
export class EventRing {
  readonly #clock: Clock;
  readonly #events: RingEvent[] = [];
  readonly #listeners = new Map<EventTopic, Set<(event: RingEvent) => void>>();
  #nextSeq: number;

  /** Numbers go on above those of an earlier start, because they begin with the time of day in microseconds. */
  constructor(clock: Clock) {
    this.#clock = clock;
    this.#nextSeq = Math.max(1, Math.floor(clock.wallMs())) * 1_000;
  }

  get lastSeq(): number {
    return this.#nextSeq - 1;
  }

  /** One event for each resource of the lease. */
  lease(type: LockEventType, lease: Lease, reason: string | null, cycle: readonly DeadlockStep[] | null = null): void {
    for (const resource of lease.resources) this.#append(type, lease, resource, { reason, cycle });
  }

  ended(lease: Lease, end: End): void {
    this.lease(end.reason === 'deadlock' ? 'deadlock' : END_EVENTS[end.state], lease, end.reason, end.cycle ?? null);
  }

  /** The lease asks to become exclusive, and stands before everybody who waits. */
  upgradeWaits(lease: Lease): void {
    lease.upgradeAnnounced = true;
    this.lease('waiting', lease, 'upgrade');
  }

  upgraded(lease: Lease): void {
    lease.upgradeAnnounced = false;
    this.lease('converted', lease, null);
  }

  /** The lease is held as it was, and waits no more. Not `cancelled`, after which a lease is over; nor told where nobody heard of the wait. */
  upgradeOver(lease: Lease, reason: string): void {
    if (!lease.upgradeAnnounced) return;
    lease.upgradeAnnounced = false;
    this.lease('converted', lease, reason);
  }

  /** `suspended`, `reconnected`: every watch hears of it. */
  contact(type: 'suspended' | 'reconnected'): void {
    const nothing = { resource: null, leaseRef: null, clientId: null, mode: null, fencingToken: null, reason: null, cycle: null };
    const event: LockEvent = { type, seq: this.#nextSeq, at: rfc3339(this.#clock.wallMs()), ...nothing };
    this.#put({ event, resource: null, sessionRef: null }, [...this.#listeners.keys()]);
  }

  /** Everything after `seq`, oldest first; `null` when some of it is gone, or when that number was never given. */
  after(seq: number): readonly RingEvent[] | null {
    const first = this.#events[0]?.event.seq ?? this.#nextSeq;
    if (seq + 1 < first || seq > this.lastSeq) return null;
    return this.#events.slice(seq + 1 - first);
  }

  listen(topic: EventTopic, listener: (event: RingEvent) => void): () => void {
    const listeners = this.#listeners.get(topic) ?? new Set();
    this.#listeners.set(topic, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(topic);
    };
  }

  #append(type: LockEventType, lease: Lease, resource: Resource, why: Pick<LockEvent, 'reason' | 'cycle'>): void {
    const event: LockEvent = {
      type,
      seq: this.#nextSeq,
      at: rfc3339(this.#clock.wallMs()),
      resource: resource.name,
      leaseRef: lease.leaseRef,
      clientId: lease.clientId,
      mode: lease.told?.mode ?? lease.mode,
      fencingToken: lease.told?.token ?? null,
      ...why,
    };
    const entry = { event, resource, sessionRef: lease.terms.session?.terms.sessionRef ?? null };
    const topics: EventTopic[] = [`resource ${resource.key}`, 'all'];
    if (entry.sessionRef !== null) topics.push(`session ${entry.sessionRef}`);
    this.#put(entry, topics);
  }

  #put(entry: RingEvent, topics: readonly EventTopic[]): void {
    this.#nextSeq += 1;
    this.#events.push(entry);
    if (this.#events.length > 2 * LIMITS.lockEventsMax) this.#events.splice(0, LIMITS.lockEventsMax);
    for (const topic of topics) for (const listener of [...(this.#listeners.get(topic) ?? [])]) listener(entry);
  }
}

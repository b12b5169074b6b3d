import type { BreakRequest } from '../domain/administration.ts';
import { type AuditDraft, auditDetail } from '../domain/audit-record.ts';
import { type Clock, type Random, rfc3339, sinceMachine, type Timer } from '../domain/clock.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import type { AnnouncedBreak, Journal, JournalOp, JournalStart, StoredLease } from '../domain/journal.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Caller } from '../domain/principal.ts';
import type { Resource } from '../domain/resource.ts';
import type { BrokenWrites } from './broken-writes.ts';
import type { Coordinator } from './coordinator.ts';
import { type Ending, endKinds } from './end-kinds.ts';
import type { EventRing } from './event-ring.ts';
import { abandoned } from './last-word.ts';
import type { LeaseDesk } from './lease-desk.ts';
import type { Lease } from './lease-record.ts';
import type { LeaseTable } from './lease-table.ts';
import type { LockAudit } from './lock-audit.ts';
import { newBreakId } from './secret-id.ts';

export interface GracesDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly coordinator: Coordinator<Lease>;
  readonly table: LeaseTable;
  readonly desk: LeaseDesk;
  readonly journal: Pick<Journal, 'commit' | 'settled'>;
  readonly writes: BrokenWrites;
  readonly events: EventRing;
  readonly audit: LockAudit;
}

interface Grace {
  readonly caller: Caller;
  readonly request: Pick<BreakRequest, 'resource' | 'reason'>;
  /** The record of its announcement, by lease. */
  readonly records: ReadonlyMap<Lease, AuditDraft>;
  readonly untilMs: number;
  /** RFC 3339, as it was told. */
  readonly deadline: string;
  readonly timer: Timer;
  readonly forgetHolders: readonly (() => void)[];
}

export interface Announcement {
  /** RFC 3339. */
  readonly deadline: string;
  /** What names the break of each lease among the operations; `null` for that of a token-less write. */
  readonly operations: ReadonlyMap<Lease, string | null>;
}

/** As the journal tells it before anything of a start is committed: some leases that were held end in the course of it. */
export interface InterruptedBreaks {
  readonly announced: readonly AnnouncedBreak[];
  readonly held: readonly StoredLease[];
}

export function interruptedBreaks(start: Pick<JournalStart, 'announcedBreaks' | 'leases'>): InterruptedBreaks {
  const announced = start.announcedBreaks();
  return { announced, held: announced.length === 0 ? [] : start.leases() };
}

type GraceTerms = Pick<Grace, 'caller' | 'request' | 'records' | 'untilMs' | 'deadline'>;

/**
 * Breaks that were announced: until the grace is over their holders may finish, and nobody new gets in. In the journal before anybody is
 * told, so that a restart forgets none of them; and shown there as pending until the last word on each.
 */
export class Graces {
  readonly #deps: GracesDeps;
  /** By resource key. */
  readonly #running = new Map<string, Grace>();
  /** Resources whose break stands in the journal. */
  readonly #stored = new Set<string>();

  constructor(deps: GracesDeps) {
    this.#deps = deps;
  }

  /** The announcement that the same request has made before; `null` when there is none, or not to this effect. */
  repeated(caller: Caller, { resource, reason, graceMs }: BreakRequest, leases: readonly Lease[]): Announcement | null {
    const running = this.#running.get(resource.key);
    if (running === undefined || running.request.reason !== reason || running.caller.principal.name !== caller.principal.name) return null;
    if (running.untilMs > this.#deps.clock.monotonicMs() + graceMs || !leases.every((lease) => running.records.has(lease))) return null;
    return { deadline: running.deadline, operations: operationOf(running.records) };
  }

  /** Takes the place of an earlier announcement, whose deadline it never moves back: its holders were told, and others wait for it. */
  async announce(caller: Caller, { resource, reason, graceMs: askedMs }: BreakRequest, details: ReadonlyMap<Lease, string>): Promise<Announcement> {
    const { clock, journal, events } = this.#deps;
    const earlier = this.#running.get(resource.key);
    const replaced = this.#replaced(earlier);
    const nowMs = clock.monotonicMs();
    const graceMs = Math.max(0, Math.floor(Math.min(askedMs, (earlier?.untilMs ?? Number.POSITIVE_INFINITY) - nowMs)));
    const untilWallMs = clock.wallMs() + graceMs;
    const meant = new Map(details);
    // Others were told before, and their time is up no later.
    for (const [lease, { detail }] of earlier?.records ?? []) if (lease.phase !== 'over' && !meant.has(lease)) meant.set(lease, detail ?? '');
    const records = new Map([...meant].map(([lease, detail]) => [lease, this.#record(caller, resource, lease, detail)] as const));
    const deadline = rfc3339(untilWallMs);
    this.#begin({ caller, request: { resource, reason }, records, untilMs: nowMs + graceMs, deadline });
    const announced = { resource, reason, graceMs, untilWallMs, at: clock.machine(), by: asStored(caller), leases: operationsOf(records.values()) };
    try {
      await journal.commit([...replaced.ops, { op: 'break_put', announced, records: [...records.values()] }]);
    } catch (thrown) {
      this.#takeBack(resource, records, earlier);
      throw thrown;
    }
    this.#stored.add(resource.key);
    for (const operationId of replaced.operations) journal.settled(operationId);
    for (const lease of records.keys()) events.lease('breaking', lease, `${reason} (until ${deadline})`);
    return { deadline, operations: operationOf(records) };
  }

  /**
   * After a restart, when the leases are back: what is left of each grace goes on, at most all of it, whatever the wall clock did. A break
   * none of whose leases came back is void.
   */
  async restore({ announced, held }: InterruptedBreaks): Promise<void> {
    const { clock, journal } = this.#deps;
    if (announced.length === 0) return;
    const heldBefore = new Map(held.map(({ leaseRef, token }) => [leaseRef, token]));
    const at = rfc3339(clock.wallMs());
    const ops: JournalOp[] = [];
    for (const one of announced) {
      const records = new Map<Lease, AuditDraft>();
      for (const { leaseRef, operationId } of one.leases) {
        const lease = this.#deps.table.byRef(leaseRef);
        const record = this.#recordAgain(one, leaseRef, operationId, lease?.told?.token ?? heldBefore.get(leaseRef) ?? null);
        if (lease?.open === true) records.set(lease, record);
        // It was held until the restart and did not come back: its end says nothing of the break.
        else if (heldBefore.has(leaseRef)) ops.push(...abandoned(record, at, one.resource.key));
      }
      if (records.size === 0) {
        ops.push({ op: 'break_gone', resourceKey: one.resource.key });
        continue;
      }
      this.#stored.add(one.resource.key);
      const leftMs = Math.max(0, Math.min(one.graceMs, graceLeftMs(one, clock)));
      const deadline = rfc3339(one.untilWallMs);
      this.#begin({ caller: asCaller(one.by), request: one, records, untilMs: clock.monotonicMs() + leftMs, deadline });
    }
    for (let i = 0; i < ops.length; i += LIMITS.endsPerUnitMax) await journal.commit(ops.slice(i, i + LIMITS.endsPerUnitMax));
    for (const op of ops) if (op.op === 'outcome') journal.settled(op.operationId);
  }

  /** Whoever got in meanwhile is not meant. A break of its own, also when one was announced: that one came to nothing, except for others. */
  breakNow(caller: Caller, { resource, reason }: Pick<BreakRequest, 'resource' | 'reason'>, leases: readonly Lease[]): void {
    const { random, writes } = this.#deps;
    const announced = [...(this.#running.get(resource.key)?.records.keys() ?? [])];
    const ends = leases.map((lease) => ({
      lease,
      end: endKinds.broken(caller, () => writes.detail(lease, reason), { operationId: newBreakId(random) }),
    }));
    if (announced.some((lease) => lease.phase !== 'over' && !leases.includes(lease))) {
      this.#deps.desk.decide(ends);
      return;
    }
    this.#forget(resource);
    this.#break(resource, ends, [...announced, ...leases]);
  }

  /** The breaks stay in the journal: the next start goes on with them. */
  stop(): void {
    for (const grace of this.#running.values()) grace.timer.cancel();
  }

  #begin({ caller, request, records, untilMs, deadline }: GraceTerms): void {
    const { clock, coordinator } = this.#deps;
    const { resource } = request;
    const leases = [...records.keys()];
    const leftMs = Math.max(0, untilMs - clock.monotonicMs());
    this.#forget(resource);
    coordinator.close(resource, clock.wallMs() + leftMs);
    for (const [lease, record] of records) lease.announcedBreaks.set(resource.key, { record, untilMs });
    const timer = clock.after(leftMs, () => this.#finish(resource));
    // When the last of them has gone by itself there is nothing left to break, and nobody need wait on.
    const left = (): void => {
      if (leases.every((lease) => lease.phase === 'over')) this.#finish(resource);
    };
    const forgetHolders = leases.map((lease) => lease.onChange(left));
    this.#running.set(resource.key, { caller, request, records, untilMs, deadline, timer, forgetHolders });
  }

  /** An announcement that did not become durable did not happen; the earlier one stands. */
  #takeBack(resource: Resource, records: ReadonlyMap<Lease, AuditDraft>, earlier: Grace | undefined): void {
    this.#forget(resource);
    for (const lease of records.keys()) lease.announcedBreaks.delete(resource.key);
    if (earlier === undefined) this.#deps.coordinator.reopen(resource);
    else this.#begin(earlier);
  }

  #finish(resource: Resource): void {
    const grace = this.#running.get(resource.key);
    if (grace === undefined) return;
    this.#forget(resource);
    this.#deps.desk.now();
    const { caller, records } = grace;
    const { reason } = grace.request;
    const ends = [...records].map(([lease, { operationId }]) => {
      const detail = (): Promise<string> => this.#deps.writes.detail(lease, reason);
      return { lease, end: endKinds.broken(caller, detail, { operationId, announcedOn: resource.key }) };
    });
    this.#break(resource, ends, [...records.keys()]);
  }

  #break(resource: Resource, ends: readonly Ending[], concerned: readonly Lease[]): void {
    this.#deps.desk.decide(ends);
    this.#deps.coordinator.reopen(resource);
    void this.#whenOver(resource, concerned);
  }

  /** Out of the journal when all of them have ended, durably. Should that fail, the next start finds it void. */
  async #whenOver(resource: Resource, leases: readonly Lease[]): Promise<void> {
    if (!this.#stored.has(resource.key)) return;
    try {
      await Promise.all(leases.map((lease) => this.#deps.desk.endTold(lease)));
      if (this.#running.has(resource.key) || !this.#stored.delete(resource.key)) return;
      await this.#deps.journal.commit([{ op: 'break_gone', resourceKey: resource.key }]);
    } catch {
      return;
    }
  }

  #forget(resource: Resource): void {
    const grace = this.#running.get(resource.key);
    if (grace === undefined) return;
    this.#running.delete(resource.key);
    grace.timer.cancel();
    for (const forget of grace.forgetHolders) forget();
  }

  /** The last words on an announcement that another one takes the place of. */
  #replaced(earlier: Grace | undefined): { readonly ops: readonly JournalOp[]; readonly operations: readonly string[] } {
    const records = [...(earlier?.records ?? [])].flatMap(([lease, record]) => (lease.phase === 'over' ? [] : record));
    const at = rfc3339(this.#deps.clock.wallMs());
    return {
      ops: records.flatMap((record) => abandoned(record, at, earlier?.request.resource.key)),
      operations: records.flatMap(({ operationId }) => operationId ?? []),
    };
  }

  #record(caller: Caller, resource: Resource, { leaseRef, terms, told }: Lease, detail: string): AuditDraft {
    const owner = { principal: terms.principal, clientId: terms.clientId, leaseRef };
    const token = told?.token ?? null;
    const mark = this.#deps.coordinator.look(resource.key)?.markTold ?? token;
    // The lease of a token-less write has no place in the journal, so nothing would have the last word on its break.
    const operationId = terms.session === null ? null : newBreakId(this.#deps.random);
    return this.#deps.audit.draft({ action: 'lease_break', resource, outcome: 'committed', caller, owner, token, mark, detail, operationId });
  }

  /** As after a restart, when its volume may be gone: nobody is asked how it was fenced. */
  #recordAgain({ by, reason, resource }: AnnouncedBreak, leaseRef: string, operationId: string, token: FencingToken | null): AuditDraft {
    const { key, volume, path } = resource;
    const caller = asCaller(by);
    const owner = { principal: by.principal, clientId: by.clientId, leaseRef };
    const detail = auditDetail(reason);
    const mark = this.#deps.coordinator.look(key)?.markTold ?? token;
    const record = this.#deps.audit.draft({
      action: 'lease_break',
      resource: null,
      outcome: 'committed',
      caller,
      owner,
      token,
      mark,
      detail,
      operationId,
    });
    return { ...record, volume, path };
  }
}

function operationOf(records: ReadonlyMap<Lease, AuditDraft>): Announcement['operations'] {
  return new Map([...records].map(([lease, { operationId }]) => [lease, operationId]));
}

function operationsOf(records: Iterable<AuditDraft>): AnnouncedBreak['leases'] {
  return [...records].flatMap(({ leaseRef, operationId }) => (leaseRef === null || operationId === null ? [] : [{ leaseRef, operationId }]));
}

function asStored({ principal, clientId, remoteAddress, requestId }: Caller): AnnouncedBreak['by'] {
  return { principal: principal.name, authenticated: principal.authenticated, clientId, remoteAddress, requestId };
}

function asCaller({ principal, authenticated, ...rest }: AnnouncedBreak['by']): Caller {
  return { principal: { name: principal, roles: new Set(['admin']), scopes: [], authenticated }, ...rest };
}

/** By the machine's count in the boot in which it was announced, else by the wall clock. */
function graceLeftMs({ graceMs, untilWallMs, at }: AnnouncedBreak, clock: Clock): number {
  const sinceMs = at === undefined ? null : sinceMachine(at, clock);
  return sinceMs === null ? untilWallMs - clock.wallMs() : graceMs - sinceMs;
}

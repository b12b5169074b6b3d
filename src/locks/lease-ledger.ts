import { type AuditAction, deadlockDetail } from '../domain/audit-record.ts';
import type { DeadlockStep } from '../domain/deadlock.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import type { Journal, JournalOp } from '../domain/journal.ts';
import type { LeaseMode } from '../domain/lease.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Caller } from '../domain/principal.ts';
import type { Resource } from '../domain/resource.ts';
import { within } from '../domain/within.ts';
import { lastLeaseEnd, leaseEnd, leasePut, raise, sessionPut, waitPut } from './lease-ops.ts';
import type { Lease } from './lease-record.ts';
import { type About, LeaseRecords, type LeaseRecordsDeps } from './lease-records.ts';
import type { Session } from './session.ts';

export interface LedgerDeps extends LeaseRecordsDeps {
  readonly journal: Pick<Journal, 'commit' | 'settled'>;
  readonly nodePath: (lease: Lease) => string;
}

/**
 * Writes grants and ends into the journal, each as one unit (I2, I4). A unit is handed over in the moment of the decision, so the
 * order of units is the order of decisions.
 * A change whose unit failed, or is still under way, travels again with the next grant on its resource: a mark can never be durable
 * while the journal still shows its predecessor as a lease that would come back at a restart.
 */
export class LeaseLedger {
  readonly #deps: LedgerDeps;
  readonly #records: LeaseRecords;
  /** By resource key, then by lease ref, or the operation of an announced break. */
  readonly #unconfirmed = new Map<string, Map<string, Unconfirmed>>();
  /** Resources whose hold-back stands in the journal. */
  readonly #heldBack = new Set<string>();

  constructor(deps: LedgerDeps) {
    this.#deps = deps;
    this.#records = new LeaseRecords(deps);
  }

  /** A grant, or a conversion to exclusive. Rejects when it did not become durable: it did not happen, or (`outcome_unknown`) the next start tells. */
  async granted(lease: Lease, token: FencingToken, action: AuditAction): Promise<void> {
    const marks = lease.resources.map((resource) => raise(lease, resource, token));
    const session = lease.terms.session;
    const newSession: JournalOp[] = session !== null && !session.stored ? [sessionPut(session)] : [];
    const leases: JournalOp[] = session === null ? [] : [this.#leasePut(lease, session, { mode: lease.mode, token })];
    const sinceMs = action === 'lease_grant' ? lease.terms.createdMs : lease.grantedMs;
    const records = lease.resources.map((resource) => this.#records.record(lease, resource, action, token, lease.terms.caller, sinceMs));
    const owed = this.#owed(lease.resources);
    await this.#deps.journal.commit([...owed.ops, ...marks, ...newSession, ...leases, ...records]);
    owed.confirm();
    if (session !== null) session.stored = true;
  }

  /** What the unit of a token-less write carries: nobody was told of the grant yet, so its mark may wait for that unit. */
  implicitOps(lease: Lease, token: FencingToken): readonly JournalOp[] {
    const { ops } = this.#owed(lease.resources);
    // Should the unit fail, the hold-back is served once more after a restart: harmless.
    for (const { key } of lease.resources) this.#heldBack.delete(key);
    return [...ops, ...lease.resources.map((resource) => raise(lease, resource, token))];
  }

  /** Holds, the time to live, or the change to shared. `action` null: no decision of its own. */
  async kept(
    lease: Lease,
    session: Session,
    told: { readonly mode: LeaseMode; readonly token: FencingToken },
    action: AuditAction | null,
    caller: Caller | null,
    about: About = {},
  ): Promise<void> {
    const put = this.#leasePut(lease, session, told);
    // What it is when it travels: a change that the journal refused was taken back.
    const confirm = this.#note(lease, { op: () => this.#leasePut(lease, session, lease.told ?? told) });
    const records =
      action === null
        ? []
        : lease.resources.map((resource) => this.#records.record(lease, resource, action, told.token, caller, lease.grantedMs, about));
    // The session that was made for the lease alone has its time to live.
    const ownSession = session.terms.implied && session.stored ? [sessionPut(session)] : [];
    await this.#deps.journal.commit([put, ...ownSession, ...records]);
    confirm();
  }

  /**
   * Its client is told that it waits. From here on a restart knows whose wait it ended. A journal that is slow, or takes nothing, costs
   * nobody the place: then only a poll tells.
   */
  async waitTold(lease: Lease): Promise<void> {
    const { session } = lease.terms;
    if (session === null || lease.waitTold) return;
    lease.waitTold = true;
    const stored = this.#deps.journal.commit([waitPut(lease, session)]).catch(() => undefined);
    await within(this.#deps.clock, LIMITS.endsAwaitedMs, stored);
  }

  /** An upgrade gives way to a deadlock: from here on the lease asks for nothing. */
  async gaveWay(lease: Lease, cycle: readonly DeadlockStep[]): Promise<void> {
    const about = { code: 'deadlock', detail: deadlockDetail(cycle) } as const;
    const sinceMs = lease.upgrade?.askedMs ?? lease.grantedMs;
    const { told, terms, upgradeKept } = lease;
    const token = told?.token ?? null;
    const records = lease.resources.map((resource) => this.#records.record(lease, resource, 'deadlock', token, null, sinceMs, about));
    lease.upgrade = null;
    const put = upgradeKept && told !== null && terms.session !== null ? [this.#leasePut(lease, terms.session, told)] : [];
    await this.#deps.journal.commit([...put, ...records]);
  }

  /**
   * The units of many ends at once; each lease gets the promise of its own unit.
   * @param carried called of a lease whose end became durable with somebody else's grant.
   */
  ended(leases: readonly Lease[], carried: (lease: Lease) => void): void {
    for (let i = 0; i < leases.length; i += LIMITS.endsPerUnitMax) {
      const unit = leases.slice(i, i + LIMITS.endsPerUnitMax);
      const confirms: (() => void)[] = [];
      const ops = unit.flatMap((lease) => {
        const end = leaseEnd(lease);
        confirms.push(this.#note(lease, { op: () => end, carried: () => carried(lease) }));
        const ops = this.#endOps(lease);
        // Whichever unit the journal takes first says all there is to say.
        for (const op of ops) if (op.op === 'outcome') confirms.push(this.#note(lease, { op: () => op, settles: op.operationId }, op.operationId));
        return ops;
      });
      // The end of a token-less write's lease needs no journal.
      if (ops.length === 0) continue;
      const durable = this.#deps.journal.commit(ops).then(() => {
        for (const confirm of confirms) confirm();
      });
      // Who waits for an end gets the rejection; an end that nobody asked about must not end the process.
      durable.catch(() => undefined);
      for (const lease of unit) if (lease.decided !== null) lease.decided.durable = durable;
    }
  }

  async sessionMade(session: Session): Promise<void> {
    await this.#deps.journal.commit([sessionPut(session)]);
    session.stored = true;
  }

  /** @param forcedBy the administrator who ended it while it held nothing: no lease's record tells of that. */
  async sessionEnded(session: Session, forcedBy: Caller | null): Promise<void> {
    const { sessionRef, principal, clientId } = session.terms;
    const ops: JournalOp[] = session.stored ? [{ op: 'session_end', sessionRef }] : [];
    if (forcedBy !== null) {
      const owner = { principal, clientId, leaseRef: null };
      ops.push({
        op: 'audit',
        record: this.#deps.audit.draft({ action: 'lease_break', resource: null, outcome: 'committed', caller: forcedBy, owner }),
      });
    }
    if (ops.length > 0) await this.#deps.journal.commit(ops);
  }

  heldBack(resourceKey: string): void {
    this.#heldBack.add(resourceKey);
  }

  #endOps(lease: Lease): JournalOp[] {
    const { decided, terms } = lease;
    if (decided === null) return [];
    const { fencedBy } = decided;
    const ops: JournalOp[] = [];
    if (fencedBy !== null) {
      ops.push(
        ...terms.resources.map(
          (resource): JournalOp => ({ op: 'raise_mark', resource, token: fencedBy, leaseRef: null, principal: null, named: false }),
        ),
      );
    }
    if (terms.session !== null) ops.push(...this.#storedEnd(lease));
    ops.push(...this.#records.ofEnd(lease, decided));
    return ops;
  }

  /** What is stored of a lease that a client has ends with it; its lock-delay begins. */
  #storedEnd(lease: Lease): JournalOp[] {
    const { decided, terms } = lease;
    const ops: JournalOp[] = [leaseEnd(lease), ...lastLeaseEnd(lease)];
    if (decided?.end.clean === false && lease.told !== null && terms.lockDelayMs > 0) {
      for (const { key } of terms.resources) {
        this.#heldBack.add(key);
        ops.push({ op: 'lock_delay', resourceKey: key, delayMs: terms.lockDelayMs });
      }
    }
    return ops;
  }

  #leasePut(lease: Lease, session: Session, told: NonNullable<Lease['told']>): JournalOp {
    lease.acquiredZnodePath ??= this.#deps.nodePath(lease);
    return leasePut(lease, session, told, { clock: this.#deps.clock, nodePath: lease.acquiredZnodePath });
  }

  /** Remembers a change until its unit is durable. Returns how to forget it. */
  #note(lease: Lease, change: Unconfirmed, name = lease.leaseRef): () => void {
    if (lease.terms.session === null) return () => undefined;
    for (const { key } of lease.resources) {
      const owed = this.#unconfirmed.get(key) ?? new Map<string, Unconfirmed>();
      this.#unconfirmed.set(key, owed);
      owed.set(name, change);
    }
    return () => this.#forget(lease.resources, name, change);
  }

  #forget(resources: readonly Resource[], name: string, change: Unconfirmed): void {
    if (change.settles !== undefined) this.#deps.journal.settled(change.settles);
    for (const { key } of resources) {
      const owed = this.#unconfirmed.get(key);
      if (owed?.get(name) === change) owed.delete(name);
      if (owed?.size === 0) this.#unconfirmed.delete(key);
    }
  }

  /** What a grant on these resources carries besides itself: unconfirmed changes, and the end of a hold-back. */
  #owed(resources: readonly Resource[]): { readonly ops: JournalOp[]; confirm(): void } {
    const changes = new Set<Unconfirmed>();
    const delays: JournalOp[] = [];
    const included: { readonly name: string; readonly change: Unconfirmed }[] = [];
    const overdue: string[] = [];
    for (const { key } of resources) {
      for (const [name, change] of this.#unconfirmed.get(key) ?? []) {
        changes.add(change);
        included.push({ name, change });
      }
      if (!this.#heldBack.has(key)) continue;
      delays.push({ op: 'lock_delay', resourceKey: key, delayMs: null });
      overdue.push(key);
    }
    const confirm = (): void => {
      for (const { name, change } of included) {
        this.#forget(resources, name, change);
        change.carried?.();
      }
      for (const key of overdue) this.#heldBack.delete(key);
    };
    return { ops: [...[...changes].map(({ op }) => op()), ...delays], confirm };
  }
}

/** A change that is not known to be durable. */
interface Unconfirmed {
  readonly op: () => JournalOp;
  /** An operation that has its last word with it. */
  readonly settles?: string;
  readonly carried?: () => void;
}

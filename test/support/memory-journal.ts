import type { AuditDraft, AuditFilter, AuditPage, AuditRecord, ChainReport } from '../../src/domain/audit-record.ts';
import { refuse } from '../../src/domain/errors.ts';
import type { FencingToken } from '../../src/domain/fencing-token.ts';
import type {
  AnnouncedBreak,
  CommitReceipt,
  EndedLease,
  EndedSession,
  IdempotencyRow,
  Journal,
  JournalOp,
  JournalStart,
  LostLease,
  Mark,
  OperationView,
  RefusalLog,
  StoredLease,
  StoredSession,
  StoredWait,
} from '../../src/domain/journal.ts';

interface Unit {
  readonly ops: readonly JournalOp[];
  readonly resolve: (receipt: CommitReceipt) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A journal in memory that keeps its promises: units become durable one after the other in the order of `commit`, nothing is seen
 * before, a refused unit leaves nothing. `hold` keeps units back until `release`; `failing` refuses them.
 */
export class MemoryJournal implements Journal, RefusalLog {
  readonly records: AuditRecord[] = [];
  readonly units: (readonly JournalOp[])[] = [];
  readonly marks = new Map<string, Mark>();
  readonly leases = new Map<string, StoredLease>();
  readonly waits = new Map<string, StoredWait>();
  readonly ended = new Map<string, EndedLease>();
  readonly sessions = new Map<string, StoredSession>();
  readonly endedSessions = new Map<string, EndedSession>();
  readonly lockDelays = new Map<string, number>();
  readonly breaks = new Map<string, AnnouncedBreak>();
  readonly meta = new Map<string, string | null>();
  /** Announced breaks without their last word. */
  readonly pending = new Set<string>();
  /** Units are refused while this is true, or once for each number of it. */
  failing: boolean | number = false;
  /** The next grant is durable, and its commit says that this is not known; every later unit is refused. */
  doubting = false;
  healthy = true;
  readonly reason = null;
  #queue: Unit[] = [];
  #held = false;
  #inDoubt: readonly JournalOp[] = [];

  commit(ops: readonly JournalOp[]): Promise<CommitReceipt> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ ops, resolve, reject });
      if (!this.#held) queueMicrotask(() => this.#drain());
    });
  }

  hold(): void {
    this.#held = true;
  }

  /** Lets everything that waits become durable; stays open. */
  release(): void {
    this.#held = false;
    this.#drain();
  }

  get waiting(): number {
    return this.#queue.length;
  }

  /** The process dies: units that are not durable are gone. What a start would find. */
  crash(): JournalStart {
    this.failing = false;
    this.#inDoubt = [];
    this.#queue = [];
    this.#held = false;
    return this.start();
  }

  /** What it tells is what there is when it is asked, as with the real one: a start changes it. */
  start(): JournalStart {
    return {
      journalUuid: 'j',
      gatewayUuid: 'g',
      markedAsBackup: false,
      meta: (name) => this.meta.get(name) ?? null,
      incarnations: () => [],
      unsettledIntents: () => [],
      newestIntents: () => [],
      saidUnknown: () => false,
      knows: () => 'never',
      leases: () => [...this.leases.values()],
      waits: () => [...this.waits.values()],
      sessions: () => [...this.sessions.values()],
      lostLeases: () => this.#lost(),
      lockDelays: () => [...this.lockDelays].map(([resourceKey, delayMs]) => ({ resourceKey, delayMs })),
      announcedBreaks: () => [...this.breaks.values()],
      highestMark: () => this.#highestMark(),
    };
  }

  #lost(): readonly LostLease[] {
    return [...this.ended.values()].flatMap(({ state, endedAt, lease }) => {
      const unasked = state === 'lost' || ((state === 'expired' || state === 'broken') && lease !== null && !('waiting' in lease));
      return lease === null || !unasked ? [] : [{ leaseId: lease.leaseId, sessionId: lease.sessionId, endedAt }];
    });
  }

  #highestMark(): FencingToken | null {
    let highest: FencingToken | null = null;
    for (const { token } of this.marks.values()) if (highest === null || token > highest) highest = token;
    return highest;
  }

  settled(operationId: string): void {
    this.pending.delete(operationId);
  }
  onSuperseded(): void {}
  async mark(resourceKey: string): Promise<Mark | null> {
    return this.marks.get(resourceKey) ?? null;
  }
  async endedLease(leaseRef: string): Promise<EndedLease | null> {
    if (this.#inDoubt.some((op) => op.op === 'lease_put' && op.lease.leaseRef === leaseRef)) throw refuse('outcome_unknown', 'It does not know.');
    return this.ended.get(leaseRef) ?? null;
  }
  async endedSession(sessionRef: string): Promise<EndedSession | null> {
    return this.endedSessions.get(sessionRef) ?? null;
  }
  async idempotent(): Promise<IdempotencyRow | null> {
    return null;
  }
  async operation(): Promise<OperationView | null> {
    return null;
  }
  async audit({ leaseRef, outcome, action }: AuditFilter, { order, limit }: Parameters<Journal['audit']>[1]): Promise<AuditPage> {
    const records = this.records.filter(
      (r) =>
        (leaseRef === undefined || r.leaseRef === leaseRef) &&
        (outcome === undefined || r.outcome === outcome) &&
        (action === undefined || r.action === action),
    );
    if (order === 'desc') records.reverse();
    return { records: records.slice(0, limit), nextCursor: records.length > limit ? 'more' : null };
  }
  async *auditStream(): AsyncGenerator<AuditRecord> {
    yield* this.records;
  }
  async verify(): Promise<ChainReport> {
    throw new Error('no chain in memory');
  }
  head(): { readonly seq: number; readonly hash: string } {
    return { seq: this.records.length, hash: '' };
  }

  async refused(record: AuditDraft): Promise<void> {
    await this.commit([{ op: 'audit', record }]);
  }
  refusedEarly(record: AuditDraft): void {
    void this.commit([{ op: 'audit', record }]).catch(() => undefined);
  }
  async flush(): Promise<void> {}

  /** `action:code` of every record, in order. */
  decisions(): string[] {
    return this.records.map(({ action, code }) => (code === null ? action : `${action}:${code}`));
  }

  #drain(): void {
    if (this.#held) return;
    const units = this.#queue;
    this.#queue = [];
    for (const { ops, resolve, reject } of units) {
      if (this.failing === true || (typeof this.failing === 'number' && this.failing > 0)) {
        if (typeof this.failing === 'number') this.failing -= 1;
        reject(refuse('journal_unavailable', 'The journal refuses.'));
        continue;
      }
      const before = this.records.length;
      for (const op of ops) this.#apply(op);
      this.units.push(ops);
      if (this.doubting && ops.some(({ op }) => op === 'lease_put')) {
        this.doubting = false;
        this.failing = true;
        this.#inDoubt = ops;
        reject(refuse('outcome_unknown', 'The journal does not know.'));
        continue;
      }
      resolve({ seqs: this.records.slice(before).map(({ seq }) => seq) });
    }
  }

  #apply(op: JournalOp): void {
    if (op.op === 'raise_mark') this.#raise(op.resource.key, op.token, op);
    else if (op.op === 'audit') this.#append(this.#marked(op.record, op.markOf));
    else if (op.op === 'outcome' && op.once === true && this.#saidOf(op.operationId, op.record) > 1) return;
    else if (op.op === 'outcome') this.#append({ ...this.#marked(op.record, op.markOf), operationId: op.operationId, outcome: op.outcome });
    else if (op.op === 'break_put') {
      this.breaks.set(op.announced.resource.key, op.announced);
      for (const { operationId } of op.announced.leases) this.pending.add(operationId);
      for (const record of op.records) this.#append(this.#marked(record, op.announced.resource.key));
    } else if (op.op === 'break_gone') this.breaks.delete(op.resourceKey);
    else if (op.op === 'meta_put') this.meta.set(op.name, op.value);
    else if (op.op === 'wait_put') this.waits.set(op.wait.leaseRef, op.wait);
    else if (op.op === 'lease_put') {
      this.leases.set(op.lease.leaseRef, op.lease);
      this.waits.delete(op.lease.leaseRef);
    } else if (op.op === 'session_put') this.sessions.set(op.session.sessionRef, op.session);
    else if (op.op === 'session_end') {
      const session = this.sessions.get(op.sessionRef);
      if (session?.implied === false) this.endedSessions.set(op.sessionRef, session);
      this.sessions.delete(op.sessionRef);
    } else if (op.op === 'lock_delay') op.delayMs === null ? this.lockDelays.delete(op.resourceKey) : this.lockDelays.set(op.resourceKey, op.delayMs);
    else if (op.op === 'lease_end') {
      const { op: _, ...ended } = op;
      const lease = this.leases.get(op.leaseRef) ?? this.waits.get(op.leaseRef) ?? this.ended.get(op.leaseRef)?.lease ?? null;
      this.ended.set(op.leaseRef, { ...ended, lease });
      this.leases.delete(op.leaseRef);
      this.waits.delete(op.leaseRef);
    }
  }

  /** The announcement of a break, and its last word. */
  #saidOf(operationId: string, { volume, path }: AuditDraft): number {
    return this.records.filter((record) => record.operationId === operationId && record.volume === volume && record.path === path).length;
  }

  #marked(record: AuditDraft, resourceKey = ''): AuditDraft {
    const token = this.marks.get(resourceKey)?.token;
    return token === undefined || (record.highWaterMark ?? 0n) >= token ? record : { ...record, highWaterMark: token };
  }

  #append(record: AuditDraft): void {
    this.records.push({ ...record, seq: this.records.length + 1, previousHash: '', hash: '' });
  }

  #raise(key: string, token: FencingToken, { leaseRef, principal, named }: Pick<Mark, 'leaseRef' | 'principal'> & { readonly named: boolean }): void {
    const old = this.marks.get(key);
    const everNamed = named || old?.everNamed === true;
    if (old === undefined || token > old.token) this.marks.set(key, { token, leaseRef, principal, everNamed });
  }
}

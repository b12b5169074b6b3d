import type { AuditFilter, AuditPage, AuditRecord, ChainReport } from '../domain/audit-record.ts';
import type { Clock } from '../domain/clock.ts';
import { GatewayError } from '../domain/errors.ts';
import type {
  CommitReceipt,
  EndedLease,
  EndedSession,
  IdempotencyRow,
  IdempotencyScope,
  Journal,
  JournalOp,
  Mark,
  OperationKey,
  OperationView,
} from '../domain/journal.ts';
import { LIMITS } from '../domain/limits.ts';
import { AuditReader } from './audit-reader.ts';
import type { GroupResult, SettlementNote, Unit } from './group-commit.ts';
import { MarkCache } from './mark-cache.ts';
import { operationView } from './operation-view.ts';
import type { OperationsInFlight } from './operations-in-flight.ts';
import type { ReaderCalls } from './reader-calls.ts';
import type { DiskFailure } from './sqlite-failure.ts';
import { journalUnavailable, recordInDoubt, type ThreadCalls } from './thread-calls.ts';
import { UnitQueue, type UnitQueueCounts } from './unit-queue.ts';
import type { UnitEffects } from './unit-writer.ts';
import { UnitsInDoubt } from './units-in-doubt.ts';
import type { WriterCalls, WriterEvent } from './writer-calls.ts';

export interface SqliteJournalParts {
  readonly writer: ThreadCalls<WriterCalls>;
  readonly reader: ThreadCalls<ReaderCalls>;
  readonly clock: Clock;
  readonly inFlight: OperationsInFlight;
  readonly head: { readonly seq: number; readonly hash: string };
  readonly beforeQuery: () => Promise<void>;
}

/** Plain numbers for the metrics. */
export interface JournalStats extends Readonly<UnitQueueCounts> {
  readonly healthy: boolean;
  readonly queueLength: number;
  readonly readsWaiting: number;
  readonly inFlight: number;
  /** WAL frames that the last checkpoint could not empty; -1 when it could not run. */
  readonly walFramesLeft: number;
  readonly checkpointsDelayed: number;
}

type JournalState = 'healthy' | DiskFailure | 'superseded' | 'closed';

const REASONS: Readonly<Record<Exclude<JournalState, 'healthy'>, string>> = {
  full: 'its disk is full; writes and grants go on once there is space',
  busy: 'its database is locked by another program, or there is no memory for it; it is tried again',
  broken: 'a commit to its disk failed; nothing more is written to it until a restart',
  superseded: 'another process of the gateway has taken it over',
  closed: 'it is closed',
};

/** The port `Journal` over two threads: one that commits in groups, one that reads. */
export class SqliteJournal implements Journal {
  readonly #writer: ThreadCalls<WriterCalls>;
  readonly #reader: ThreadCalls<ReaderCalls>;
  readonly #clock: Clock;
  readonly #inFlight: OperationsInFlight;
  readonly #queue: UnitQueue;
  readonly #marks: MarkCache;
  readonly #audit: AuditReader;
  readonly #inDoubt = new UnitsInDoubt();
  readonly #supersededListeners: (() => void)[] = [];
  #head: { readonly seq: number; readonly hash: string };
  #state: JournalState = 'healthy';
  #walFramesLeft = 0;
  #checkpointsDelayed = 0;

  constructor(parts: SqliteJournalParts) {
    this.#writer = parts.writer;
    this.#reader = parts.reader;
    this.#clock = parts.clock;
    this.#inFlight = parts.inFlight;
    this.#head = parts.head;
    this.#queue = new UnitQueue({
      send: (units) => this.#send(units),
      onDurable: (effects) => this.#durable(effects),
      onGroup: (result) => this.#grouped(result),
      onDoubt: (units) => this.#inDoubt.add(units),
    });
    this.#marks = new MarkCache(LIMITS.markCacheMax, (resourceKey) => this.#read('mark', { resourceKey }));
    this.#audit = new AuditReader({
      search: (step) => this.#read('search', step),
      verify: (step) => this.#read('verify', step),
      head: () => this.#head,
      inFlight: parts.inFlight,
      beforeQuery: parts.beforeQuery,
    });
  }

  commit(ops: readonly JournalOp[]): Promise<CommitReceipt> {
    return this.#queue.commit(ops);
  }

  settled(operationId: string): void {
    this.#inFlight.settled(operationId);
    this.#inDoubt.settled(operationId);
  }

  get healthy(): boolean {
    return this.#state === 'healthy';
  }

  get reason(): string | null {
    return this.#state === 'healthy' ? null : REASONS[this.#state];
  }

  onSuperseded(listener: () => void): void {
    if (this.#state === 'superseded') queueMicrotask(listener);
    else this.#supersededListeners.push(listener);
  }

  mark(resourceKey: string): Promise<Mark | null> {
    return this.#marks.get(resourceKey);
  }

  endedLease(leaseRef: string): Promise<EndedLease | null> {
    if (this.#inDoubt.hasLease(leaseRef)) return Promise.reject(recordInDoubt());
    return this.#read('endedLease', { leaseRef });
  }

  endedSession(sessionRef: string): Promise<EndedSession | null> {
    return this.#read('endedSession', { sessionRef });
  }

  async idempotent(scope: IdempotencyScope): Promise<IdempotencyRow | null> {
    return this.#inDoubt.idempotent(scope) ?? this.#read('idempotent', { scope, nowMs: this.#clock.wallMs() });
  }

  async operation(key: OperationKey): Promise<OperationView | null> {
    const inDoubt = this.#inDoubt.operation(key);
    if (inDoubt !== null) return inDoubt;
    const records = await this.#read('operation', { key, nowMs: this.#clock.wallMs() });
    return operationView(records.map((record) => this.#audit.shown(record)));
  }

  audit(filter: AuditFilter, page: { readonly order: 'asc' | 'desc'; readonly limit: number; readonly cursor: string | null }): Promise<AuditPage> {
    return this.#audit.page(filter, page);
  }

  auditStream(filter: AuditFilter, order: 'asc' | 'desc', signal: AbortSignal): AsyncIterable<AuditRecord> {
    return this.#audit.stream(filter, order, signal);
  }

  verify(fromSeq: number | null, signal: AbortSignal): Promise<ChainReport> {
    return this.#audit.verify(fromSeq, signal);
  }

  head(): { readonly seq: number; readonly hash: string } {
    return this.#head;
  }

  stats(): JournalStats {
    return {
      ...this.#queue.counts,
      healthy: this.healthy,
      queueLength: this.#queue.length,
      readsWaiting: this.#reader.waiting,
      inFlight: this.#inFlight.size,
      walFramesLeft: this.#walFramesLeft,
      checkpointsDelayed: this.#checkpointsDelayed,
    };
  }

  /** What the writer thread reports on its own. */
  onWriterEvent(event: WriterEvent): void {
    switch (event.kind) {
      case 'superseded':
        this.#superseded();
        break;
      case 'health':
        this.#health(event.failure ?? 'healthy');
        break;
      case 'checkpoint':
        this.#walFramesLeft = event.walFrames;
        if (!event.complete) this.#checkpointsDelayed += 1;
        break;
    }
  }

  onWriterDeath(): void {
    this.#health('broken');
  }

  /** Refuses new units, carries out the queued ones, and gives what is settled, to be stored. */
  async drain(): Promise<SettlementNote> {
    this.#queue.shut(journalUnavailable('The journal is closed.'));
    await this.#queue.idle();
    if (this.#state !== 'superseded') this.#state = 'closed';
    return this.#settlement();
  }

  #settlement(): SettlementNote {
    return { lowWater: this.#inFlight.lowWater(this.#head.seq), closed: this.#inFlight.toClose() };
  }

  #send(units: readonly Unit[]): Promise<GroupResult> {
    // The disk is never tried again after a failed sync, nor may a superseded process try.
    if (this.#state === 'broken' || this.#state === 'superseded') {
      return Promise.resolve({ done: false, failure: this.#state, message: `the journal is ${this.#state}`, inDoubt: false });
    }
    const settlement = this.#settlement();
    return this.#writer.call('commit', { units, settlement }).then(
      (result) => {
        if (result.done) this.#inFlight.closed(settlement.closed);
        return result;
      },
      (thrown: unknown) => {
        // One that lives has rolled back. One that died had the units, and nobody saw how far it got.
        if (!this.#writer.isDead) throw thrown;
        return { done: false, failure: 'broken', message: String(thrown), inDoubt: true };
      },
    );
  }

  #grouped(result: GroupResult): void {
    if (result.done) {
      this.#head = result.head;
      // A full disk has room for a small commit now and then; that it has room again is for the writer's trial to say.
      if (this.#state !== 'full') this.#health('healthy');
    } else if (result.failure === 'superseded') this.#superseded();
    else this.#health(result.failure);
  }

  #durable(effects: UnitEffects): void {
    for (const { resourceKey, mark } of effects.marks) this.#marks.raise(resourceKey, mark);
    for (const { operationId, seq } of effects.intents) this.#inFlight.started(operationId, seq);
    for (const operationId of effects.announced) this.#inFlight.announced(operationId);
    for (const operationId of effects.undecided) if (this.#inFlight.has(operationId)) this.#inFlight.setAside(operationId);
  }

  /** `broken`, `superseded` and `closed` are final. */
  #health(state: 'healthy' | DiskFailure): void {
    if (this.#state === 'healthy' || this.#state === 'full' || this.#state === 'busy') this.#state = state;
  }

  #superseded(): void {
    if (this.#state === 'superseded') return;
    this.#state = 'superseded';
    for (const listener of this.#supersededListeners.splice(0)) listener();
  }

  #read<K extends keyof ReaderCalls & string>(name: K, input: ReaderCalls[K]['input']): Promise<ReaderCalls[K]['output']> {
    if (this.#reader.waiting >= LIMITS.journalReadsMax) {
      return Promise.reject(
        new GatewayError('overloaded', { detail: 'Too many requests wait for the journal.', retryAfterMs: LIMITS.journalRetryAfterMs }),
      );
    }
    return this.#reader.call(name, input);
  }
}

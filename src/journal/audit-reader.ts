import type { AuditFilter, AuditPage, AuditRecord, ChainReport } from '../domain/audit-record.ts';
import { LIMITS } from '../domain/limits.ts';
import { decodeAuditCursor, encodeAuditCursor } from './audit-cursor.ts';
import type { SearchFound, SearchStep } from './audit-search.ts';
import type { VerifyFound, VerifyStep } from './chain-verifier.ts';
import type { OperationsInFlight } from './operations-in-flight.ts';

export interface AuditReaderParts {
  readonly search: (step: SearchStep) => Promise<SearchFound>;
  readonly verify: (step: VerifyStep) => Promise<VerifyFound>;
  readonly head: () => { readonly seq: number; readonly hash: string };
  readonly inFlight: OperationsInFlight;
  /** Makes what is only counted so far durable: a query sees every decision answered before it. */
  readonly beforeQuery: () => Promise<void>;
}

/** Audit queries, streams and verification, put together from the reader thread's short steps. */
export class AuditReader {
  readonly #parts: AuditReaderParts;

  constructor(parts: AuditReaderParts) {
    this.#parts = parts;
  }

  async page(
    filter: AuditFilter,
    page: { readonly order: 'asc' | 'desc'; readonly limit: number; readonly cursor: string | null },
  ): Promise<AuditPage> {
    const from = page.cursor === null ? null : decodeAuditCursor(page.cursor, page.order);
    if (from === null) await this.#parts.beforeQuery();
    const snapshot = from?.snapshot ?? this.#parts.head().seq;
    const limit = Math.min(Math.max(1, page.limit), LIMITS.auditPageMax);
    // One more than asked for tells whether there is a next page.
    const records: AuditRecord[] = [];
    for await (const record of this.#walk(filter, { order: page.order, snapshot, after: from?.after ?? null, limit: limit + 1 })) {
      records.push(record);
      if (records.length > limit) break;
    }
    const last = records[limit - 1];
    if (records.length <= limit || last === undefined) return { records, nextCursor: null };
    return { records: records.slice(0, limit), nextCursor: encodeAuditCursor({ order: page.order, snapshot, after: last.seq }) };
  }

  async *stream(filter: AuditFilter, order: 'asc' | 'desc', signal: AbortSignal): AsyncIterable<AuditRecord> {
    signal.throwIfAborted();
    await this.#parts.beforeQuery();
    for await (const record of this.#walk(filter, { order, snapshot: this.#parts.head().seq, after: null, limit: LIMITS.auditPageMax })) {
      signal.throwIfAborted();
      yield record;
    }
  }

  /** No transaction is open while the consumer takes its time between two records. */
  async *#walk(filter: AuditFilter, from: Pick<SearchStep, 'order' | 'snapshot' | 'after' | 'limit'>): AsyncIterable<AuditRecord> {
    let after = from.after;
    let window = 0;
    do {
      const found = await this.#parts.search({ ...from, filter, after, window, inFlight: this.#inFlight(filter) });
      for (const record of found.records) {
        const shown = this.shown(record);
        // An operation that was settled, or begun, between asking and answering fits the filter no more.
        if (filter.outcome === undefined || shown.outcome === filter.outcome) yield shown;
      }
      after = found.after;
      window = found.window;
    } while (after !== null);
  }

  #inFlight({ outcome }: AuditFilter): readonly string[] {
    return outcome === 'committed' || outcome === 'pending' ? this.#parts.inFlight.ids() : [];
  }

  /** A committed record whose operation is still under way is shown as pending (presumed commit). */
  shown(record: AuditRecord): AuditRecord {
    if (record.outcome !== 'committed' || record.operationId === null || !this.#parts.inFlight.has(record.operationId)) return record;
    return { ...record, outcome: 'pending' };
  }

  /** Checks the chain up to its present head, which is known in memory: a tail that was cut off shows. */
  async verify(fromSeq: number | null, signal: AbortSignal): Promise<ChainReport> {
    const head = this.#parts.head();
    const page = { until: head.seq, limit: LIMITS.auditPageMax };
    // Behind the head there is no record to check, but still the statement of where the keyed part begins.
    const behind = fromSeq !== null && fromSeq > head.seq;
    let step: VerifyStep = behind ? { ...page, from: head.seq + 1, previousHash: head.hash } : { ...page, from: fromSeq, previousHash: null };
    const report = {
      valid: true,
      records: 0,
      firstSeq: null as number | null,
      lastSeq: null as number | null,
      headHash: head.hash,
      firstBadSeq: null as number | null,
      keyedFromSeq: null as number | null,
    };
    for (;;) {
      signal.throwIfAborted();
      const found = await this.#parts.verify(step);
      report.records += found.records;
      report.firstSeq ??= found.firstSeq;
      report.lastSeq = found.lastSeq ?? report.lastSeq;
      report.keyedFromSeq = found.keyedFromSeq;
      if (found.firstBadSeq !== null) return { ...report, valid: false, firstBadSeq: found.firstBadSeq };
      if (found.lastSeq === null || found.lastSeq >= head.seq) {
        const ends = report.records === 0 || found.lastHash === head.hash;
        return ends ? report : { ...report, valid: false, firstBadSeq: head.seq };
      }
      step = { ...step, from: found.lastSeq + 1, previousHash: found.lastHash };
    }
  }
}

import type { Database, Statement } from 'better-sqlite3';
import type { JournalOp, Mark } from '../domain/journal.ts';
import type { AuditAppender } from './audit-appender.ts';
import { IdempotencyWriter } from './idempotency-writer.ts';
import { IntentWriter } from './intent-rows.ts';
import { LeaseWriter } from './lease-writer.ts';
import { MarkWriter } from './mark-writer.ts';

/** What a unit left behind, for the memory of the main thread. */
export interface UnitEffects {
  readonly seqs: readonly number[];
  readonly marks: readonly { readonly resourceKey: string; readonly mark: Mark }[];
  readonly intents: readonly { readonly operationId: string; readonly seq: number }[];
  /** Operations whose outcome nobody can tell yet. */
  readonly undecided: readonly string[];
  /** Breaks whose grace has begun. */
  readonly announced: readonly string[];
}

/** Carries out the operations of a unit inside the caller's transaction. */
export class UnitWriter {
  readonly #audit: AuditAppender;
  readonly #marks: MarkWriter;
  readonly #intents: IntentWriter;
  readonly #leases: LeaseWriter;
  readonly #idempotency: IdempotencyWriter;
  readonly #putIncarnation: Statement<[string, string]>;
  readonly #removeIncarnation: Statement<[string, string]>;
  readonly #putMeta: Statement<[string, string]>;
  readonly #removeMeta: Statement<[string]>;

  constructor(db: Database, audit: AuditAppender, limits: { readonly idempotencyRowsMax: number }) {
    this.#audit = audit;
    this.#marks = new MarkWriter(db);
    this.#intents = new IntentWriter(db);
    this.#leases = new LeaseWriter(db);
    this.#idempotency = new IdempotencyWriter(db, limits.idempotencyRowsMax);
    this.#putIncarnation = db.prepare('INSERT OR IGNORE INTO incarnations (volume, incarnation) VALUES (?, ?)');
    this.#removeIncarnation = db.prepare('DELETE FROM incarnations WHERE volume = ? AND incarnation = ?');
    this.#putMeta = db.prepare('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)');
    this.#removeMeta = db.prepare('DELETE FROM meta WHERE name = ?');
  }

  write(ops: readonly JournalOp[]): UnitEffects {
    const effects = {
      seqs: [] as number[],
      marks: [] as { resourceKey: string; mark: Mark }[],
      intents: [] as { operationId: string; seq: number }[],
      undecided: [] as string[],
      announced: [] as string[],
    };
    for (const op of ops) {
      switch (op.op) {
        case 'raise_mark':
          effects.marks.push({ resourceKey: op.resource.key, mark: this.#marks.raise(op) });
          break;
        case 'audit':
          effects.seqs.push(this.#audit.append(this.#marks.named(op.record, op.markOf)));
          break;
        case 'intent': {
          const { intent } = op;
          const seq = this.#audit.append({ ...intent.audit, operationId: intent.operationId, outcome: 'committed' });
          this.#intents.put(seq, intent);
          effects.seqs.push(seq);
          effects.intents.push({ operationId: intent.operationId, seq });
          break;
        }
        case 'outcome':
          if (op.once === true && this.#audit.hasLastWord(op.record, op.operationId)) break;
          effects.seqs.push(this.#outcome(op));
          if (op.outcome === 'unknown') effects.undecided.push(op.operationId);
          break;
        case 'break_put':
          this.#leases.putBreak(op.announced);
          for (const record of op.records) effects.seqs.push(this.#audit.append(this.#marks.named(record, op.announced.resource.key)));
          effects.announced.push(...op.announced.leases.map(({ operationId }) => operationId));
          break;
        default:
          this.#writeFact(op);
      }
    }
    return effects;
  }

  /** Operations that were undecided are settled. */
  close(operationIds: readonly string[]): void {
    for (const operationId of operationIds) this.#intents.close(operationId);
  }

  #outcome(op: Extract<JournalOp, { op: 'outcome' }>): number {
    const record = { ...this.#marks.named(op.record, op.markOf), operationId: op.operationId, outcome: op.outcome };
    this.#intents.decide(op.operationId, op.outcome, record.volume, record.path);
    this.#idempotency.settle(op);
    return this.#audit.appendLastWord(record, op.operationId);
  }

  #writeFact(op: Exclude<JournalOp, { op: 'raise_mark' | 'audit' | 'intent' | 'outcome' | 'break_put' }>): void {
    switch (op.op) {
      case 'lease_put':
        this.#leases.put(op.lease);
        break;
      case 'wait_put':
        this.#leases.put(op.wait);
        break;
      case 'lease_end':
        this.#leases.end(op);
        break;
      case 'session_put':
        this.#leases.putSession(op.session);
        break;
      case 'session_end':
        this.#leases.endSession(op.sessionRef);
        break;
      case 'lock_delay':
        this.#leases.delay(op.resourceKey, op.delayMs);
        break;
      case 'break_gone':
        this.#leases.removeBreak(op.resourceKey);
        break;
      case 'idempotency_put':
        this.#idempotency.put(op);
        break;
      case 'incarnation_put':
        this.#putIncarnation.run(op.volume, op.incarnation);
        break;
      case 'incarnation_gone':
        this.#removeIncarnation.run(op.volume, op.incarnation);
        break;
      case 'meta_put':
        if (op.value === null) this.#removeMeta.run(op.name);
        else this.#putMeta.run(op.name, op.value);
        break;
    }
  }
}

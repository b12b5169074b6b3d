import type { Database, Statement } from 'better-sqlite3';
import type { AuditDraft, StoredOutcome } from '../domain/audit-record.ts';
import type { FileFacts, StagedFacts } from '../domain/file-facts.ts';
import type { ApplyPlan, Intent } from '../domain/intent.ts';
import { type AuditRow, draftOf } from './audit-row.ts';
import { fromJsonText, toJsonText } from './json-text.ts';

interface IntentBody {
  readonly name: string;
  readonly before: FileFacts | null;
  readonly staged: StagedFacts | null;
  readonly plan: ApplyPlan;
  /** Only once retention has taken the audit record away. */
  readonly audit?: AuditDraft;
}

type IntentRow = AuditRow & {
  readonly intent_seq: bigint;
  readonly undecided: bigint;
  readonly intent_volume: string;
  readonly intent_path: string;
  readonly intent_operation: string;
  readonly resource_key: string;
  readonly incarnation: string;
  readonly body: string;
};

/** Writes intents beside their audit records (presumed commit). */
export class IntentWriter {
  readonly #insert: Statement;
  readonly #forget: Statement<[string, string | null, string | null, string | null]>;
  readonly #mark: Statement<[number, string, string | null, string | null, string | null]>;
  readonly #close: Statement<[string]>;

  constructor(db: Database) {
    this.#insert = db.prepare(
      'INSERT INTO intents (seq, operation_id, volume, path, resource_key, other_key, incarnation, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
    );
    this.#forget = db.prepare('DELETE FROM intents WHERE operation_id = ? AND (? IS NULL OR (volume = ? AND path = ?))');
    this.#mark = db.prepare('UPDATE intents SET undecided = ? WHERE operation_id = ? AND (? IS NULL OR (volume = ? AND path = ?))');
    this.#close = db.prepare('UPDATE intents SET undecided = 0 WHERE operation_id = ? AND undecided = 1');
  }

  put(seq: number, intent: Intent): void {
    const { resource, plan } = intent;
    const body: IntentBody = { name: resource.name, before: intent.before, staged: intent.staged, plan };
    const otherKey = plan.kind === 'move' ? plan.from.key : null;
    this.#insert.run(seq, intent.operationId, resource.volume, resource.path, resource.key, otherKey, intent.incarnation, toJsonText(body));
  }

  /**
   * What an outcome means for the intents of a resource: an aborted one must never be finished by recovery, nor its manifest rolled
   * forward, so it is taken out; an unknown one stays open until its last word.
   */
  decide(operationId: string, outcome: StoredOutcome, volume: string | null, path: string | null): void {
    if (outcome === 'aborted' || outcome === 'rejected') this.#forget.run(operationId, volume, volume, path);
    else this.#mark.run(outcome === 'unknown' ? 1 : 0, operationId, volume, volume, path);
  }

  /** An operation that was undecided and needs no look any more. */
  close(operationId: string): void {
    this.#close.run(operationId);
  }
}

/** Only the newest intent of each resource it touches can be unapplied: sections are serial and each apply is synced. */
const UNSETTLED = `
SELECT a.*, i.seq AS intent_seq, i.undecided, i.volume AS intent_volume, i.path AS intent_path, i.operation_id AS intent_operation, i.resource_key, i.incarnation, i.body
FROM intents i LEFT JOIN audit a ON a.seq = i.seq
WHERE i.seq IN (SELECT seq FROM intents WHERE seq >= :lowWater UNION SELECT seq FROM intents WHERE undecided = 1) AND (:volume IS NULL OR i.volume = :volume)
  AND NOT EXISTS (SELECT 1 FROM intents n WHERE n.resource_key = i.resource_key AND n.seq > i.seq)
  AND NOT EXISTS (SELECT 1 FROM intents n WHERE n.other_key IS NOT NULL AND n.other_key = i.resource_key AND n.seq > i.seq)
  AND (i.other_key IS NULL OR NOT EXISTS (SELECT 1 FROM intents n WHERE n.resource_key = i.other_key AND n.seq > i.seq))
  AND (i.other_key IS NULL OR NOT EXISTS (SELECT 1 FROM intents n WHERE n.other_key IS NOT NULL AND n.other_key = i.other_key AND n.seq > i.seq))
ORDER BY i.seq`;

/** The newest of all volumes first, so that a volume that nobody writes to costs no walk through the others' intents. */
const NEWEST = `
SELECT a.*, i.seq AS intent_seq, i.undecided, i.volume AS intent_volume, i.path AS intent_path, i.operation_id AS intent_operation, i.resource_key, i.incarnation, i.body
FROM (SELECT * FROM intents ORDER BY seq DESC LIMIT :limit) i LEFT JOIN audit a ON a.seq = i.seq
WHERE i.volume = :volume
ORDER BY i.seq`;

function intentOf(row: IntentRow): Intent {
  const body = fromJsonText(row.body) as IntentBody;
  return {
    operationId: row.intent_operation,
    resource: { volume: row.intent_volume, path: row.intent_path, name: body.name, key: row.resource_key },
    before: body.before,
    staged: body.staged,
    plan: body.plan,
    incarnation: row.incarnation,
    audit: body.audit ?? draftOf(row),
  };
}

export class IntentReader {
  readonly #unsettled: Statement<[{ lowWater: number; volume: string | null }], IntentRow>;
  readonly #newest: Statement<[{ limit: number; volume: string }], IntentRow>;
  readonly #has: Statement<[string], number>;
  readonly #undecided: Statement<[string, string], number>;

  constructor(db: Database) {
    this.#unsettled = db.prepare<[{ lowWater: number; volume: string | null }], IntentRow>(UNSETTLED).safeIntegers();
    this.#newest = db.prepare<[{ limit: number; volume: string }], IntentRow>(NEWEST).safeIntegers();
    this.#has = db.prepare<[string], number>('SELECT 1 FROM intents WHERE operation_id = ? LIMIT 1').pluck();
    this.#undecided = db
      .prepare<[string, string], number>('SELECT 1 FROM intents WHERE operation_id = ? AND resource_key = ? AND undecided = 1')
      .pluck();
  }

  /** Intents at or above the low-water mark that may not be applied, oldest first; all volumes when `volume` is `null`. */
  unsettled(volume: string | null, lowWater: number): { readonly seq: number; readonly undecided: boolean; readonly intent: Intent }[] {
    return this.#unsettled
      .all({ lowWater, volume })
      .map((row) => ({ seq: Number(row.intent_seq), undecided: row.undecided === 1n, intent: intentOf(row) }));
  }

  /** Those of a volume among the newest `limit` intents of all, oldest first. */
  newest(volume: string, limit: number): Intent[] {
    return this.#newest.all({ limit, volume }).map(intentOf);
  }

  has(operationId: string): boolean {
    return this.#has.get(operationId) !== undefined;
  }

  isUndecided({ operationId, resource }: Intent): boolean {
    return this.#undecided.get(operationId, resource.key) !== undefined;
  }
}

/** Before retention takes audit records away, those of undecided intents are copied to where recovery will look for them. */
export class IntentAuditKeeper {
  readonly #concerned: Statement<[number], AuditRow & { readonly body: string }>;
  readonly #update: Statement<[string, bigint]>;

  constructor(db: Database) {
    this.#concerned = db
      .prepare<[number], AuditRow & { readonly body: string }>(
        'SELECT a.*, i.body FROM intents i JOIN audit a ON a.seq = i.seq WHERE i.undecided = 1 AND i.seq <= ?',
      )
      .safeIntegers();
    this.#update = db.prepare('UPDATE intents SET body = ? WHERE seq = ?');
  }

  keep(upToSeq: number): void {
    for (const row of this.#concerned.all(upToSeq)) {
      this.#update.run(toJsonText({ ...(fromJsonText(row.body) as IntentBody), audit: draftOf(row) }), row.seq);
    }
  }
}

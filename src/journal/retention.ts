import type { Database, Statement } from 'better-sqlite3';
import { LIMITS } from '../domain/limits.ts';
import type { ChainKeys } from './audit-chain.ts';
import { writeAnchor } from './chain-anchor.ts';
import { ChainVerifier } from './chain-verifier.ts';
import { IntentAuditKeeper } from './intent-rows.ts';
import { InternalFacts } from './internal-facts.ts';
import { SeqSearch } from './seq-search.ts';

export interface RetentionPolicy {
  /** `null`: for ever. Operations stay queryable for 7 days whatever this says. */
  readonly keepDays: number | null;
  /** Size of the database above which old records go, never younger than those 7 days. `null`: no bound. */
  readonly keepBytes: number | null;
}

const DAY_MS = 86_400_000;

/** Removes what is past its time, in small transactions. What remains of the audit chain hangs on a sealed anchor. */
export class Retention {
  readonly #db: Database;
  readonly #keys: ChainKeys;
  readonly #policy: RetentionPolicy;
  readonly #facts: InternalFacts;
  readonly #search: SeqSearch;
  readonly #verifier: ChainVerifier;
  readonly #intentAudits: IntentAuditKeeper;
  readonly #removeAudit: Statement<[number]>;
  readonly #oldRows: readonly { readonly remove: Statement<[number]>; readonly keptMs: number }[];
  readonly #removeIntents: Statement<[{ seq: number; lowWater: number }]>;

  constructor(db: Database, keys: ChainKeys, policy: RetentionPolicy) {
    this.#db = db;
    this.#keys = keys;
    this.#policy = policy;
    this.#facts = new InternalFacts(db);
    this.#search = new SeqSearch(db);
    this.#verifier = new ChainVerifier(db, keys);
    this.#intentAudits = new IntentAuditKeeper(db);
    this.#removeAudit = db.prepare('DELETE FROM audit WHERE seq <= ?');
    const rows = LIMITS.journalMaintenanceRowsMax;
    this.#oldRows = [
      {
        remove: db.prepare(`DELETE FROM ended_leases WHERE lease_ref IN (SELECT lease_ref FROM ended_leases WHERE stored_ms < ? LIMIT ${rows})`),
        keptMs: LIMITS.leaseEndedKeptMs,
      },
      {
        remove: db.prepare(
          `DELETE FROM ended_sessions WHERE session_ref IN (SELECT session_ref FROM ended_sessions WHERE stored_ms < ? LIMIT ${rows})`,
        ),
        keptMs: LIMITS.leaseEndedKeptMs,
      },
      {
        remove: db.prepare(
          `DELETE FROM idempotency WHERE (principal, key, method, path) IN (SELECT principal, key, method, path FROM idempotency WHERE at_ms < ? LIMIT ${rows})`,
        ),
        keptMs: LIMITS.idempotencyKeptMs,
      },
    ];
    this.#removeIntents = db.prepare(
      // An operation is unsettled as a whole: while one of its intents is undecided, recovery asks for the others too.
      `DELETE FROM intents WHERE seq IN (SELECT i.seq FROM intents i WHERE i.seq < :seq AND i.seq < :lowWater
        AND NOT EXISTS (SELECT 1 FROM intents u WHERE u.operation_id = i.operation_id AND u.undecided = 1) ORDER BY i.seq LIMIT ${rows})`,
    );
  }

  /** One small transaction's worth. @returns true when more is left. Runs inside the caller's transaction. */
  step(nowMs: number): boolean {
    let more = false;
    for (const { remove, keptMs } of this.#oldRows) more = remove.run(nowMs - keptMs).changes >= LIMITS.journalMaintenanceRowsMax || more;
    const lowWater = this.#facts.number('settled_low_water');
    const seq = this.#search.firstAtOrAfter(nowMs - LIMITS.journalIntentsKeptMs);
    more = this.#removeIntents.run({ seq, lowWater }).changes >= LIMITS.journalMaintenanceRowsMax || more;
    return this.#cutAudit(nowMs, lowWater) || more;
  }

  #cutAudit(nowMs: number, lowWater: number): boolean {
    const bounds = this.#search.bounds();
    if (bounds === null) return false;
    const oldestMs = Math.max(LIMITS.operationsKeptMs, (this.#policy.keepDays ?? Number.POSITIVE_INFINITY) * DAY_MS);
    const byAge = Number.isFinite(oldestMs) ? this.#search.firstAtOrAfter(nowMs - oldestMs) - 1 : 0;
    const bySize = this.#overBytes() ? this.#search.firstAtOrAfter(nowMs - LIMITS.operationsKeptMs) - 1 : 0;
    // Records of intents under way are what recovery reads; they stay, and so does the last record of all.
    const wanted = Math.min(Math.max(byAge, bySize), lowWater - 1, bounds.last - 1);
    const cut = Math.min(wanted, bounds.first + LIMITS.journalMaintenanceRowsMax - 1);
    if (cut < bounds.first) return false;
    return this.#cutAt(cut) && wanted > cut;
  }

  /** @returns false when nothing was cut. */
  #cutAt(seq: number): boolean {
    // Evidence of tampering is never removed: what does not verify stays, and the log with it, until somebody has looked.
    const { firstBadSeq, lastSeq, lastHash } = this.#verifier.step({
      from: null,
      previousHash: null,
      until: seq,
      limit: LIMITS.journalMaintenanceRowsMax,
    });
    if (firstBadSeq !== null || lastSeq !== seq) return false;
    this.#intentAudits.keep(seq);
    writeAnchor(this.#facts, this.#keys, seq, Buffer.from(lastHash, 'hex'));
    this.#removeAudit.run(seq);
    return true;
  }

  #overBytes(): boolean {
    if (this.#policy.keepBytes === null) return false;
    const pages = Number(this.#db.pragma('page_count', { simple: true })) - Number(this.#db.pragma('freelist_count', { simple: true }));
    return pages * Number(this.#db.pragma('page_size', { simple: true })) > this.#policy.keepBytes;
  }
}

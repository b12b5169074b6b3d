import type { Database } from 'better-sqlite3';
import { type ChainKey, ChainKeys, GENESIS_HASH, placeSeal, recordHash } from '../../src/journal/audit-chain.ts';
import { type AuditRow, draftOf } from '../../src/journal/audit-row.ts';

/** What somebody does who can write the journal's file and has no key: everything that needs none is made to fit. */

const PLAIN = new ChainKeys([]).signing;

/** Turns these records into plain ones, and computes their part of the chain anew. */
export function recomputePlain(db: Database, from = 1, until = Number.MAX_SAFE_INTEGER): void {
  recompute(db, PLAIN, from, until);
}

/** The key as it was before there were statements of the keyed part. */
export function unstatedKey(secret: Uint8Array): ChainKey {
  const keys = new ChainKeys([secret]);
  const key = keys.find(keys.signing.id.replace('-stated', ''));
  if (key === undefined) throw new Error('the key of such a journal is not known');
  return key;
}

/** What a program wrote with this key before there were statements of the keyed part. */
export function asBeforeStatements(db: Database, secret: Uint8Array, from: number): void {
  recompute(db, unstatedKey(secret), from, Number.MAX_SAFE_INTEGER);
  forgetKeyedPart(db);
}

function recompute(db: Database, key: ChainKey, from: number, until: number): void {
  const rows = db.prepare<[number, number], AuditRow>('SELECT * FROM audit WHERE seq BETWEEN ? AND ? ORDER BY seq').safeIntegers().all(from, until);
  const update = db.prepare('UPDATE audit SET chain_key = ?, previous_hash = ?, hash = ? WHERE seq = ?');
  let previous =
    db
      .prepare<[number], Buffer>('SELECT hash FROM audit WHERE seq = ?')
      .pluck()
      .get(from - 1) ?? GENESIS_HASH;
  for (const row of rows) {
    const hash = recordHash(key, previous, Number(row.seq), draftOf(row));
    update.run(key.id, previous, hash, row.seq);
    previous = hash;
  }
}

/** Removes the records up to `seq` and puts an anchor there that the key seals; by default it is the plain hash. */
export function cutUnderAnchor(db: Database, seq: number, key = PLAIN): void {
  const hash = db.prepare<[number], Buffer>('SELECT hash FROM audit WHERE seq = ?').pluck().get(seq) ?? GENESIS_HASH;
  db.prepare('DELETE FROM audit WHERE seq <= ?').run(seq);
  const facts = {
    anchor_seq: String(seq),
    anchor_hash: hash.toString('hex'),
    anchor_key: key.id,
    anchor_seal: placeSeal('anchor', key, seq, hash).toString('hex'),
  };
  for (const [name, value] of Object.entries(facts)) db.prepare('INSERT OR REPLACE INTO internal (name, value) VALUES (?, ?)').run(name, value);
}

/** Takes the statement away of where the keyed part begins. */
export function forgetKeyedPart(db: Database): void {
  db.exec("DELETE FROM internal WHERE name LIKE 'keyed\\_%' ESCAPE '\\'");
}

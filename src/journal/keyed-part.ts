import type { Database } from 'better-sqlite3';
import { type ChainKeys, isSealed, placeSeal, recordHash, STATED_KEY } from './audit-chain.ts';
import { type AuditRow, draftOf } from './audit-row.ts';
import { readAnchor, writeAnchor } from './chain-anchor.ts';
import type { InternalFacts } from './internal-facts.ts';

/**
 * The statement of where the keyed part of the chain begins: records up to `afterSeq`, whose hash is `afterHash`, may be plain, later
 * ones may not. Sealed with the key, because otherwise whoever can write the file could make all of it plain, or cut its beginning.
 */
export interface KeyedPart {
  /** 0: everything is keyed. */
  readonly afterSeq: number;
  readonly afterHash: Buffer;
}

export interface KeyedPartFound {
  /** `null`: no key is in use, or nothing that one of the keys has sealed says where the keyed part begins. */
  readonly part: KeyedPart | null;
  /** False when the statement and the keys do not go together: one of them is missing, or another key has sealed it. */
  readonly genuine: boolean;
}

export function readKeyedPart(facts: InternalFacts, keys: ChainKeys): KeyedPartFound {
  const stored = facts.get('keyed_after_hash');
  if (stored === null) return { part: null, genuine: !keys.areSecret };
  const afterSeq = facts.number('keyed_after_seq');
  const afterHash = Buffer.from(stored, 'hex');
  const key = keys.find(facts.get('keyed_key') ?? '');
  const genuine = key !== undefined && key.secret !== null && isSealed(facts.get('keyed_seal'), 'keyed', key, afterSeq, afterHash);
  return { part: genuine ? { afterSeq, afterHash } : null, genuine };
}

/**
 * Makes the statement when a key is used for the first time over this journal, and seals anew with it where retention had cut.
 * Inside the owner's transaction, before the first keyed record. @returns what was stated; `null` when there is a statement, or may be none.
 */
export function stateKeyedPart(db: Database, facts: InternalFacts, keys: ChainKeys): KeyedPart | null {
  if (!keys.areSecret || facts.get('keyed_after_hash') !== null) return null;
  const anchor = readAnchor(facts, keys);
  const firstKeyed = db.prepare<[], AuditRow>("SELECT * FROM audit WHERE chain_key <> 'sha256' ORDER BY seq LIMIT 1").safeIntegers().get();
  const part = firstKeyed === undefined ? lastRecord(db, anchor) : before(db, keys, firstKeyed);
  if (part === null) return null;
  // Retention leaves the last record, so between its plain anchor and a key that came later there is a plain one.
  if (anchor.sealedPlainly && firstKeyed !== undefined && part.afterSeq <= anchor.seq) return null;
  if (anchor.sealedPlainly) writeAnchor(facts, keys, anchor.seq, anchor.hash);
  facts.put('keyed_after_seq', part.afterSeq);
  facts.put('keyed_after_hash', part.afterHash.toString('hex'));
  facts.put('keyed_key', keys.signing.id);
  facts.put('keyed_seal', placeSeal('keyed', keys.signing, part.afterSeq, part.afterHash).toString('hex'));
  return part;
}

export interface KeyedPartAtStart extends Pick<KeyedPartFound, 'genuine'> {
  readonly fromSeq: number | null;
  /** This very start has made the statement. */
  readonly stated: boolean;
}

export function keyedPartAtStart(db: Database, facts: InternalFacts, keys: ChainKeys): KeyedPartAtStart {
  const stated = stateKeyedPart(db, facts, keys) !== null;
  const { part, genuine } = readKeyedPart(facts, keys);
  return { fromSeq: part === null ? null : part.afterSeq + 1, genuine, stated };
}

function lastRecord(db: Database, anchor: { readonly seq: number; readonly hash: Buffer }): KeyedPart {
  const last = db.prepare<[], { seq: number; hash: Buffer }>('SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1').get() ?? anchor;
  return { afterSeq: last.seq, afterHash: last.hash };
}

/** Of a journal from before there were statements: the key vouches for its first keyed record, and so for the hash before that. */
function before(db: Database, keys: ChainKeys, first: AuditRow): KeyedPart | null {
  // One written under a statement: somebody took the statement away.
  if (db.prepare('SELECT 1 FROM audit WHERE substr(chain_key, 1, ?) = ? LIMIT 1').get(STATED_KEY.length, STATED_KEY) !== undefined) return null;
  const key = keys.find(first.chain_key);
  const seq = Number(first.seq);
  if (key === undefined || !recordHash(key, first.previous_hash, seq, draftOf(first)).equals(first.hash)) return null;
  return { afterSeq: seq - 1, afterHash: first.previous_hash };
}

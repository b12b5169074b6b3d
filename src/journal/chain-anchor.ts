import { timingSafeEqual } from 'node:crypto';
import { anchorSeal, type ChainKeys, GENESIS_HASH } from './audit-chain.ts';
import type { InternalFacts } from './internal-facts.ts';

/** The last record that retention removed: what remains of the chain hangs on it. */
export interface ChainAnchor {
  readonly seq: number;
  readonly hash: Buffer;
  /** False when the seal does not fit: somebody else moved the anchor. */
  readonly genuine: boolean;
}

export function readAnchor(facts: InternalFacts, keys: ChainKeys): ChainAnchor {
  const stored = facts.get('anchor_hash');
  if (stored === null) return { seq: 0, hash: GENESIS_HASH, genuine: true };
  const seq = facts.number('anchor_seq');
  const hash = Buffer.from(stored, 'hex');
  const key = keys.find(facts.get('anchor_key') ?? '');
  const seal = Buffer.from(facts.get('anchor_seal') ?? '', 'hex');
  const expected = key === undefined ? undefined : anchorSeal(key, seq, hash);
  return { seq, hash, genuine: expected !== undefined && expected.length === seal.length && timingSafeEqual(expected, seal) };
}

export function writeAnchor(facts: InternalFacts, keys: ChainKeys, seq: number, hash: Buffer): void {
  facts.put('anchor_seq', seq);
  facts.put('anchor_hash', hash.toString('hex'));
  facts.put('anchor_key', keys.signing.id);
  facts.put('anchor_seal', anchorSeal(keys.signing, seq, hash).toString('hex'));
}

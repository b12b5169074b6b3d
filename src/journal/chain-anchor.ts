import { type ChainKeys, GENESIS_HASH, isSealed, placeSeal } from './audit-chain.ts';
import type { InternalFacts } from './internal-facts.ts';

/** The last record that retention removed: what remains of the chain hangs on it. */
export interface ChainAnchor {
  readonly seq: number;
  readonly hash: Buffer;
  /** False when the seal does not fit: somebody else moved the anchor. With a secret key only a seal by a secret key fits. */
  readonly genuine: boolean;
  /** Genuine but for its key: retention cut the chain while no secret key was in use. */
  readonly sealedPlainly: boolean;
}

export function readAnchor(facts: InternalFacts, keys: ChainKeys): ChainAnchor {
  const stored = facts.get('anchor_hash');
  if (stored === null) return { seq: 0, hash: GENESIS_HASH, genuine: true, sealedPlainly: false };
  const seq = facts.number('anchor_seq');
  const hash = Buffer.from(stored, 'hex');
  const key = keys.find(facts.get('anchor_key') ?? '');
  const fits = key !== undefined && isSealed(facts.get('anchor_seal'), 'anchor', key, seq, hash);
  const sealedPlainly = fits && key.secret === null;
  return { seq, hash, genuine: fits && !(sealedPlainly && keys.areSecret), sealedPlainly };
}

export function writeAnchor(facts: InternalFacts, keys: ChainKeys, seq: number, hash: Buffer): void {
  facts.put('anchor_seq', seq);
  facts.put('anchor_hash', hash.toString('hex'));
  facts.put('anchor_key', keys.signing.id);
  facts.put('anchor_seal', placeSeal('anchor', keys.signing, seq, hash).toString('hex'));
}

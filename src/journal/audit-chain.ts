import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { AuditDraft } from '../domain/audit-record.ts';

/**
 * The chain that makes tampering visible: each record's hash covers the hash before it and every field of its own.
 * With a key it is an HMAC, because whoever can write the file could recompute a plain hash. Each row names the key that made it,
 * so that older rows stay verifiable when a key is added or changed. Used by the writer and by `verify`.
 */
export interface ChainKey {
  /** Stored with each row; no secret. */
  readonly id: string;
  /** `null`: a plain SHA-256. */
  readonly secret: Uint8Array | null;
}

const PLAIN: ChainKey = { id: 'sha256', secret: null };

/** What stands before the first record of all. */
export const GENESIS_HASH = Buffer.alloc(32);

/** Every row that was written under a statement of where the keyed part begins has a key of this kind; see `keyed-part.ts`. */
export const STATED_KEY = 'hmac-sha256-stated:';
/** The kind of the rows from before there were such statements. */
const UNSTATED_KEY = 'hmac-sha256:';

function keyed(kind: string, secret: Uint8Array): ChainKey {
  const fingerprint = createHash('sha256').update('audit key id\0').update(secret).digest('hex').slice(0, 16);
  return { id: `${kind}${fingerprint}`, secret };
}

/** The keys of the chain: the first one signs, all of them (and the plain hash) verify. */
export class ChainKeys {
  readonly signing: ChainKey;
  readonly #byId: ReadonlyMap<string, ChainKey>;

  constructor(secrets: readonly Uint8Array[]) {
    const keys = secrets.map((secret) => keyed(STATED_KEY, secret));
    const older = secrets.map((secret) => keyed(UNSTATED_KEY, secret));
    this.signing = keys[0] ?? PLAIN;
    this.#byId = new Map([PLAIN, ...keys, ...older].map((key) => [key.id, key]));
  }

  /** Whoever has no key cannot write what these accept. */
  get areSecret(): boolean {
    return this.signing.secret !== null;
  }

  find(id: string): ChainKey | undefined {
    return this.#byId.get(id);
  }
}

/** Each field with its length before it, so that no two records have one encoding. What is stored as NULL differs from an empty text. */
function encode(field: string | number | bigint | null | undefined): string {
  if (field === null || field === undefined) return '-';
  const text = String(field);
  return `${text.length}:${text}`;
}

/** All fields of a record in a fixed order; a new field goes to the end and is only encoded when it is not `null`. */
function fieldsOf(seq: number, record: AuditDraft): readonly (string | number | bigint | null)[] {
  return [
    seq,
    record.at,
    record.action,
    record.volume,
    record.path,
    record.outcome,
    record.code,
    record.status,
    record.principal,
    record.clientId,
    record.remoteAddress,
    record.requestId,
    record.operationId,
    record.leaseRef,
    record.fencingToken,
    record.highWaterMark,
    record.sizeBytes,
    record.digest,
    record.etagBefore,
    record.etagAfter,
    record.durationMs,
    record.fenceLevel,
    record.count,
    ...(record.detail === undefined ? [] : [record.detail]),
  ];
}

function digest(key: ChainKey, text: string, previousHash: Uint8Array): Buffer {
  const hash = key.secret === null ? createHash('sha256') : createHmac('sha256', key.secret);
  return hash.update(previousHash).update(text, 'utf8').digest();
}

/** The hash of one record; 32 bytes. */
export function recordHash(key: ChainKey, previousHash: Uint8Array, seq: number, record: AuditDraft): Buffer {
  return digest(key, `${encode(key.id)}${fieldsOf(seq, record).map(encode).join('')}`, previousHash);
}

/** `anchor`: where retention cut the chain. `keyed`: the last record that may be a plain one. */
export type SealedPlace = 'anchor' | 'keyed';

/** Vouches for a place in the chain, so that nobody without the key can move it. */
export function placeSeal(place: SealedPlace, key: ChainKey, seq: number, hash: Uint8Array): Buffer {
  return digest(key, `${place}${encode(key.id)}${encode(seq)}`, hash);
}

export function isSealed(seal: string | null, place: SealedPlace, key: ChainKey, seq: number, hash: Uint8Array): boolean {
  const expected = placeSeal(place, key, seq, hash);
  const found = Buffer.from(seal ?? '', 'hex');
  return expected.length === found.length && timingSafeEqual(expected, found);
}

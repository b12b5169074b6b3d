import type { FileFacts, StagedFacts } from '../../domain/file-facts.ts';

/** Facts of files as our records on a volume hold them (redo entries, manifests). Read back as strictly as what a stranger sends. */

export class RecordDamaged extends Error {}

export type Fields = Readonly<Record<string, unknown>>;

export function parseFields(bytes: Uint8Array): Fields {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch (thrown) {
    throw new RecordDamaged('the record is not JSON', { cause: thrown });
  }
  return fieldsOf(value);
}

export function fieldsOf(value: unknown): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new RecordDamaged('the record is not an object');
  return value as Fields;
}

export function textOf(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value !== 'string' || value === '') throw new RecordDamaged(`the record has no ${name}`);
  return value;
}

/** The name of an entry in the incarnation directory: never a way out of it. */
export function entryNameOf(fields: Fields, name: string): string {
  const value = textOf(fields, name);
  if (value.includes('/') || value === '.' || value === '..') throw new RecordDamaged(`the record's ${name} is no plain name`);
  return value;
}

export function countOf(fields: Fields, name: string): number {
  const value = fields[name];
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw new RecordDamaged(`the record has no ${name}`);
  return value;
}

export function bigOf(fields: Fields, name: string): bigint {
  const value = textOf(fields, name);
  if (!/^-?[0-9]{1,20}$/.test(value)) throw new RecordDamaged(`the record's ${name} is no number`);
  return BigInt(value);
}

export function factsFields(facts: FileFacts): Fields {
  return { ino: facts.ino.toString(), size_bytes: facts.sizeBytes, mtime_ns: facts.mtimeNs.toString() };
}

export function factsFrom(value: unknown): FileFacts {
  const fields = fieldsOf(value);
  return { ino: bigOf(fields, 'ino'), sizeBytes: countOf(fields, 'size_bytes'), mtimeNs: bigOf(fields, 'mtime_ns') };
}

export function stagedFields(staged: StagedFacts): Fields {
  return { ...factsFields(staged), name: staged.name, sha256: staged.sha256 };
}

export function stagedFrom(value: unknown): StagedFacts {
  const fields = fieldsOf(value);
  const sha256 = fields['sha256'];
  if (typeof sha256 !== 'string') throw new RecordDamaged('the record has no sha256');
  return { ...factsFrom(fields), name: entryNameOf(fields, 'name'), sha256 };
}

export function orNull<T>(value: unknown, read: (value: unknown) => T): T | null {
  return value === null || value === undefined ? null : read(value);
}

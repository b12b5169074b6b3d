import type { FileFacts, StagedFacts } from '../../domain/file-facts.ts';
import type { At } from '../descriptor.ts';
import type { FileCalls } from '../file-calls.ts';
import {
  entryNameOf,
  type Fields,
  factsFields,
  factsFrom,
  fieldsOf,
  orNull,
  parseFields,
  RecordDamaged,
  stagedFields,
  stagedFrom,
  textOf,
} from './facts-record.ts';
import type { IncarnationDirectory } from './incarnation-directory.ts';
import { readSmall, writeSmall } from './whole-file.ts';

/** One target of a manifest; for a move the one entry is the new name. */
export interface ManifestEntry {
  readonly path: string;
  readonly before: FileFacts | null;
  readonly staged: StagedFacts | null;
  /** The second name, in the incarnation directory, of the file that is replaced; `null` when there is none. */
  readonly kept: { readonly name: string; readonly facts: FileFacts } | null;
}

/**
 * What MOVE and writes of several files are about to do, durable before their intents. `direction` is `back` once it was decided
 * that the old files are put back; a decision that was taken is never taken again.
 */
export interface Manifest {
  readonly name: string;
  readonly operationId: string;
  readonly kind: 'several' | 'move';
  readonly direction: 'forward' | 'back';
  readonly entries: readonly ManifestEntry[];
  readonly from: { readonly path: string; readonly source: FileFacts } | null;
}

export function manifestBytes(manifest: Manifest): Uint8Array {
  const entries: Fields[] = manifest.entries.map((entry) => ({
    path: entry.path,
    before: entry.before === null ? null : factsFields(entry.before),
    staged: entry.staged === null ? null : stagedFields(entry.staged),
    kept: entry.kept === null ? null : { ...factsFields(entry.kept.facts), name: entry.kept.name },
  }));
  const from = manifest.from === null ? null : { ...factsFields(manifest.from.source), path: manifest.from.path };
  return Buffer.from(
    `${JSON.stringify({ name: manifest.name, operation_id: manifest.operationId, kind: manifest.kind, direction: manifest.direction, entries, from })}\n`,
  );
}

export function parseManifest(bytes: Uint8Array): Manifest {
  const fields = parseFields(bytes);
  const kind = textOf(fields, 'kind');
  const direction = textOf(fields, 'direction');
  const entries = fields['entries'];
  if (kind !== 'several' && kind !== 'move') throw new RecordDamaged('the manifest is of no known kind');
  if (direction !== 'forward' && direction !== 'back') throw new RecordDamaged('the manifest has no direction');
  if (!Array.isArray(entries) || entries.length === 0) throw new RecordDamaged('the manifest has no entries');
  const from = orNull(fields['from'], (value) => ({ path: textOf(fieldsOf(value), 'path'), source: factsFrom(value) }));
  if ((kind === 'move') !== (from !== null)) throw new RecordDamaged('the manifest does not say what moves');
  return { name: entryNameOf(fields, 'name'), operationId: textOf(fields, 'operation_id'), kind, direction, entries: entries.map(entryFrom), from };
}

function entryFrom(value: unknown): ManifestEntry {
  const fields = fieldsOf(value);
  return {
    path: textOf(fields, 'path'),
    before: orNull(fields['before'], factsFrom),
    staged: orNull(fields['staged'], stagedFrom),
    kept: orNull(fields['kept'], (kept) => ({ name: entryNameOf(fieldsOf(kept), 'name'), facts: factsFrom(kept) })),
  };
}

export async function readManifest(calls: FileCalls, where: At): Promise<Manifest | null> {
  const bytes = await readSmall(calls, where);
  return bytes === null ? null : parseManifest(bytes);
}

/** Durable when it resolves. */
export async function putManifest(calls: FileCalls, directory: IncarnationDirectory, manifest: Manifest): Promise<void> {
  await writeSmall(calls, directory, directory.entry(manifest.name), manifestBytes(manifest));
}

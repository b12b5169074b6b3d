import type { FileFacts, StagedFacts } from '../../domain/file-facts.ts';
import type { Intent } from '../../domain/intent.ts';
import type { At } from '../descriptor.ts';
import type { FileCalls } from '../file-calls.ts';
import { redoName } from '../incarnation-names.ts';
import {
  bigOf,
  countOf,
  type Fields,
  factsFields,
  factsFrom,
  orNull,
  parseFields,
  RecordDamaged,
  stagedFields,
  stagedFrom,
  textOf,
} from './facts-record.ts';
import type { IncarnationDirectory } from './incarnation-directory.ts';
import { readSmall, writeSmall } from './whole-file.ts';

/**
 * The redo entry of an append or an in-place write: with the staged file, which holds the bytes, it repeats the write (I3). It lies
 * beside the staged file, durable before the first `pwrite`, and goes when the outcome is known.
 */
export interface RedoEntry {
  readonly operationId: string;
  readonly incarnation: string;
  readonly kind: 'append' | 'in_place';
  readonly path: string;
  readonly before: FileFacts;
  readonly offset: number;
  readonly lengthBytes: number;
  /** The mtime that the written file gets. */
  readonly mtimeNs: bigint;
  readonly staged: StagedFacts;
  /** Set when the target's inode is about to be replaced by a changed copy: this is the copy. */
  readonly replacement: FileFacts | null;
}

/** Throws when the intent is none that is written in place. */
export function redoEntryOf(intent: Intent): RedoEntry {
  const { plan, before, staged } = intent;
  if ((plan.kind !== 'append' && plan.kind !== 'in_place') || before === null || staged === null)
    throw new Error(`an intent of kind ${plan.kind} has no redo entry`);
  return {
    operationId: intent.operationId,
    incarnation: intent.incarnation,
    kind: plan.kind,
    path: intent.resource.path,
    before,
    offset: plan.offset,
    lengthBytes: plan.lengthBytes,
    mtimeNs: plan.mtimeNs,
    staged,
    replacement: null,
  };
}

export function redoBytes(entry: RedoEntry): Uint8Array {
  const fields: Fields = {
    operation_id: entry.operationId,
    incarnation: entry.incarnation,
    kind: entry.kind,
    path: entry.path,
    before: factsFields(entry.before),
    offset: entry.offset,
    length_bytes: entry.lengthBytes,
    mtime_ns: entry.mtimeNs.toString(),
    staged: stagedFields(entry.staged),
    replacement: entry.replacement === null ? null : factsFields(entry.replacement),
  };
  return Buffer.from(`${JSON.stringify(fields)}\n`);
}

export function parseRedo(bytes: Uint8Array): RedoEntry {
  const fields = parseFields(bytes);
  const kind = textOf(fields, 'kind');
  if (kind !== 'append' && kind !== 'in_place') throw new RecordDamaged('the redo entry is of no known kind');
  const entry: RedoEntry = {
    operationId: textOf(fields, 'operation_id'),
    incarnation: textOf(fields, 'incarnation'),
    kind,
    path: textOf(fields, 'path'),
    before: factsFrom(fields['before']),
    offset: countOf(fields, 'offset'),
    lengthBytes: countOf(fields, 'length_bytes'),
    mtimeNs: bigOf(fields, 'mtime_ns'),
    staged: stagedFrom(fields['staged']),
    replacement: orNull(fields['replacement'], factsFrom),
  };
  if (entry.staged.sizeBytes !== entry.lengthBytes) throw new RecordDamaged('the redo entry does not fit its staged file');
  return entry;
}

/** Durable when it resolves. */
export async function writeRedoEntry(calls: FileCalls, directory: IncarnationDirectory, entry: RedoEntry): Promise<void> {
  await writeSmall(calls, directory, directory.entry(redoName(entry.staged.name)), redoBytes(entry));
}

export async function readRedoEntry(calls: FileCalls, where: At): Promise<RedoEntry | null> {
  const bytes = await readSmall(calls, where);
  return bytes === null ? null : parseRedo(bytes);
}

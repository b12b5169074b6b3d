import { LIMITS } from '../../domain/limits.ts';
import type { FileCalls } from '../file-calls.ts';
import type { IncarnationDirectory } from './incarnation-directory.ts';
import { isSillyRename } from './volume-names.ts';
import { orAbsent } from './whole-file.ts';

/** The names in the own directory. All are ours; one that is not UTF-8 is not. */
export async function ownNames(calls: FileCalls, directory: IncarnationDirectory): Promise<string[]> {
  return (await calls.names(directory.descriptor, LIMITS.incarnationEntriesMax)).map((name) => name.toString('utf8'));
}

/**
 * Unlinks everything in the own directory that no intent, manifest or redo entry needs. Only once every outcome is durable: what
 * is gone then proves nothing any more.
 */
export async function sweep(calls: FileCalls, directory: IncarnationDirectory, needed: ReadonlySet<string>): Promise<number> {
  let swept = 0;
  for (const name of await ownNames(calls, directory)) {
    if (needed.has(name) || isSillyRename(name)) continue;
    await orAbsent(calls.unlink(directory.entry(name)));
    swept += 1;
  }
  return swept;
}

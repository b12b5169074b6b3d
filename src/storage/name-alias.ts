import { refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import { foldedKey } from '../domain/resource.ts';
import type { Descriptor } from './descriptor.ts';
import type { FileCalls } from './file-calls.ts';

/**
 * Where a volume folds names, two spellings are one file and share one fence (traps F15, F16; case B32). The stored name stays
 * byte-exact, so a request by another spelling than the stored one is refused instead of renaming or hiding somebody's file.
 */

/** The name among `names` that is the same file as `name` under another spelling; `null` when `name` itself is there, or nothing is. */
export function aliasAmong(names: Iterable<Buffer>, name: string): Buffer | null {
  const wanted = Buffer.from(name);
  const key = foldedKey(name);
  let alias: Buffer | null = null;
  for (const found of names) {
    if (found.equals(wanted)) return null;
    if (foldedKey(found.toString('utf8')) === key) alias = found;
  }
  return alias;
}

/** Throws `name_alias` when the directory has the name under another spelling. Reads the whole directory, on folding volumes only. */
export async function assertNoAlias(calls: FileCalls, directory: Descriptor, name: string): Promise<void> {
  const alias = aliasAmong(await calls.names(directory, LIMITS.listEntriesMax), name);
  if (alias !== null) throw refuse('name_alias', 'This volume holds the name under another spelling.', { stored_name: alias.toString('utf8') });
}

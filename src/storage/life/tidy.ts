import type { Intent } from '../../domain/intent.ts';
import type { FileCalls } from '../file-calls.ts';
import { RecordDamaged } from './facts-record.ts';
import type { IncarnationDirectory } from './incarnation-directory.ts';
import { namesOf, namesOfManifest } from './intent-names.ts';
import { readManifest } from './manifest-record.ts';
import { orAbsent } from './whole-file.ts';

/** Unlinks what an operation left in the own directory, once its outcome is durable. Asking again does nothing. */
export async function tidyIntent(calls: FileCalls, directory: IncarnationDirectory, intent: Intent): Promise<void> {
  const names =
    intent.plan.kind === 'several' ? [...(await severalNames(calls, directory, intent.plan.manifest)), ...namesOf(intent)] : namesOf(intent);
  for (const name of names) await orAbsent(calls.unlink(directory.entry(name)));
}

async function severalNames(calls: FileCalls, directory: IncarnationDirectory, manifest: string): Promise<string[]> {
  try {
    const found = await readManifest(calls, directory.entry(manifest));
    return found === null ? [] : namesOfManifest(manifest, found.entries.length);
  } catch (thrown) {
    // Swept at the next start.
    if (thrown instanceof RecordDamaged) return [manifest];
    throw thrown;
  }
}

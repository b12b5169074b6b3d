import { refuse } from '../../domain/errors.ts';
import type { Intent, Settled } from '../../domain/intent.ts';
import { mapped } from '../errno.ts';
import type { HeldPlace } from '../path-walk.ts';
import { redoEntryOf, writeRedoEntry } from './redo.ts';
import { settleIntent } from './settle.ts';
import type { SettleRoom } from './settle-room.ts';
import { restoreSeveral } from './settle-several.ts';
import { orAbsent } from './whole-file.ts';
import { writeManifestOf } from './write-manifest.ts';

/** What an open volume needs of this room while it serves: records before an apply, verdicts and clearing up after it. */
export interface VolumeLife {
  /** Rejects with `volume_unavailable` when the volume does not answer; the caller asks again later. */
  settle(intent: Intent): Promise<Settled>;
  restore(intents: readonly Intent[]): Promise<boolean>;
  writeRedo(intent: Intent): Promise<void>;
  writeManifest(operationId: string, intents: readonly Intent[], places: readonly HeldPlace[]): Promise<void>;
  /** Of a name in the own directory; a missing one is no error. */
  unlink(name: string): Promise<void>;
}

export function volumeLife(deps: SettleRoom): VolumeLife {
  const { room, directory } = deps;
  return {
    settle: (intent) => mapped(() => settleIntent(deps, intent)),
    restore: (intents) => mapped(() => restoreSeveral(deps, intents)),
    writeRedo: (intent) => mapped(() => writeRedoEntry(room.calls, directory, redoEntryOf(intent))),
    writeManifest: (operationId, intents, places) => mapped(() => writeManifestOf(room, directory, operationId, intents, places)),
    unlink: async (name) => void (await orAbsent(room.calls.unlink(directory.entry(name)))),
  };
}

/** A volume without an own directory (`read_only`): nothing of this is ever asked, and nothing of it would work. */
export function noLife(volume: string): VolumeLife {
  const refused = (): Promise<never> => Promise.reject(refuse('volume_read_only', `The volume ${volume} is read-only.`));
  return { settle: refused, restore: refused, writeRedo: refused, writeManifest: refused, unlink: () => Promise.resolve() };
}

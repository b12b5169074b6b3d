import type { Clock, Random } from '../../domain/clock.ts';
import type { FenceLevel } from '../../domain/fence-level.ts';
import type { VolumeRecord, WriterState } from '../../domain/recovery.ts';
import type { Volume, VolumePolicy } from '../../domain/volume.ts';
import type { VolumeTitles } from '../../domain/volume-title.ts';
import type { Descriptor } from '../descriptor.ts';
import type { FileCalls } from '../file-calls.ts';
import type { VolumeRoom } from '../room.ts';
import type { VolumeLife } from './volume-life.ts';

/** What a start must know of the probe; the report of `../probe.ts` has it. */
export interface ProbeFacts {
  readonly folds: boolean;
  readonly hardLinks: boolean;
  /** The self-test passed: a rename out of a removed directory fails. */
  readonly fenceHolds: boolean;
}

export interface OpenVolumeParts<Probe extends ProbeFacts> {
  readonly policy: VolumePolicy;
  readonly room: VolumeRoom;
  readonly fenceLevel: FenceLevel;
  readonly probe: Probe;
  readonly life: VolumeLife;
  /** To be called (again and again if need be) when the own directory is found removed. */
  readonly onFenced: () => void;
}

/** What every part of a start needs. */
export interface StartContext {
  readonly policy: VolumePolicy;
  readonly calls: FileCalls;
  /** For the directories above the root: another mount than the volume's, which may hang where the volume does not. */
  readonly callsAbove: FileCalls;
  readonly titles: VolumeTitles;
  readonly journalUuid: string;
  readonly markedAsBackup: () => boolean;
  /** The highest mark or floor in the journal. */
  readonly journalKnows: () => bigint | null;
  readonly record: VolumeRecord;
  readonly clock: Clock;
  readonly random: Random;
  readonly writerOf: (incarnation: string) => WriterState;
  /** Ends the old process on this host and waits for its end; false when that is impossible. */
  readonly endOldProcess: () => Promise<boolean>;
  readonly onFenced: () => void;
  readonly onStampFailure: (thrown: unknown) => void;
}

export interface VolumeStartDeps<Probe extends ProbeFacts> extends StartContext {
  /** `control` is null on a read-only volume: then nothing may be written for the probe. */
  readonly probe: (calls: FileCalls, root: Descriptor, control: Descriptor | null) => Promise<Probe>;
  readonly openVolume: (parts: OpenVolumeParts<Probe>) => Volume & { close?(): Promise<void> };
}

/**
 * `plain`: only our own past directories are cleared, and the owner file must name us. `rebase`: every incarnation directory is
 * cleared. `adopt`: that, and the volume is taken over from whoever owns it.
 */
export type StartMode = 'plain' | 'rebase' | 'adopt';

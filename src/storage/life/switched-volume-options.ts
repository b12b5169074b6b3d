import type { Clock } from '../../domain/clock.ts';
import type { VolumePolicy } from '../../domain/volume.ts';
import type { StartMode } from './start-deps.ts';
import type { VolumeStartResult } from './start-report.ts';
import type { SwitchedVolume } from './switched-volume.ts';

export interface SwitchedVolumeOptions {
  readonly policy: VolumePolicy;
  readonly clock: Clock;
  /** One attempt; never rejects but for the journal. */
  readonly start: (mode: StartMode) => Promise<VolumeStartResult>;
  /** Why it may be somebody else's at this moment; `null` when it is certainly ours. */
  readonly doubt: () => string | null;
  /** What people should know of it although it is open; asked whenever it opens. */
  readonly notice?: () => string | null;
  /** Something about the volume changed that people want to know. */
  readonly onChange: (volume: SwitchedVolume) => void;
}

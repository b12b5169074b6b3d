import type { Config } from '../config/config.ts';
import type { Clock, Random } from '../domain/clock.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { Journal, JournalStart } from '../domain/journal.ts';
import { ASYNC_IS_NOT_SEEN } from '../domain/mount-facts.ts';
import type { VolumeTitles } from '../domain/volume-title.ts';
import type { CommitMtimes } from '../gateway/commit-mtimes.ts';
import { journalKnows, takenFromName, volumeRecord, writersBefore } from '../gateway/recover.ts';
import type { Logger } from '../observability/logger.ts';
import type { Metrics } from '../observability/metrics.ts';
import { hasAttributeLibrary } from '../storage/attribute-calls.ts';
import { detectFileSystem } from '../storage/file-system.ts';
import { VolumeSet } from '../storage/volume-set.ts';

export interface VolumeParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly random: Random;
  readonly start: JournalStart;
  readonly journal: Journal;
  readonly mtimes: CommitMtimes;
  readonly statusOf: (code: ErrorCode) => number;
  readonly titles: VolumeTitles;
  /** Whether the process that had the volumes before was seen to exit. */
  readonly predecessorExited: boolean;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** A volume opened and its token stamp was read. */
  readonly onCeiling: (ceiling: bigint) => void;
}

/** The configured volumes, with what the journal knows of each. */
export function volumesOf(parts: VolumeParts): VolumeSet {
  const { config, clock, random, start, journal, mtimes, statusOf, titles, predecessorExited, logger, metrics, onCeiling } = parts;
  if (!hasAttributeLibrary && config.volumes.some(({ path, attributes }) => path !== null && attributes === 'keep'))
    logger.warn('fs-xattr is not installed: files lose their ACL and extended attributes when they are replaced');
  // An increase is only seen from a value that was there before.
  for (const { name, path } of config.volumes) if (path !== null) metrics.attributesNotCarried(name, 0);
  return new VolumeSet({
    policies: config.volumes,
    clock,
    random,
    titles,
    journalUuid: start.journalUuid,
    markedAsBackup: () => start.markedAsBackup,
    record: (volume) => volumeRecord({ start, journal, clock, statusOf }, volume),
    journalKnows: (volume) => journalKnows(start, [volume]),
    takenFrom: (volume) => start.meta(takenFromName(volume)),
    writerOf: writersBefore(
      start,
      config.volumes.map(({ name }) => name),
      predecessorExited,
    ),
    endOldProcess: () => Promise.resolve(predecessorExited),
    lastMtimeNs: (volume) => mtimes.highest(volume),
    newestIntents: (volume) => start.newestIntents(volume),
    onChange: (volume) => {
      onCeiling(volume.ceilingFound ?? 0n);
      logger.info({ volume: volume.name, ...volume.state(), fence_level: volume.fenceLevel }, 'volume');
    },
    onMount: (volume, { fileSystem, isNetwork, options, warnings }) => {
      for (const warning of warnings) logger.warn({ volume, ...warning }, 'a mount option weakens what the volume promises');
      if (isNetwork) logger.info({ volume, file_system: fileSystem, options }, ASYNC_IS_NOT_SEEN);
    },
    detectFileSystem,
    onAttributesNotCarried: (volume, count) => metrics.attributesNotCarried(volume, count),
    onStampFailure: (volume, error) => logger.error({ volume, error }, 'the token stamp could not be written'),
  });
}

import type { Clock, Random } from '../domain/clock.ts';
import { refuse } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import type { Intent } from '../domain/intent.ts';
import { LIMITS } from '../domain/limits.ts';
import type { MountFacts } from '../domain/mount-facts.ts';
import type { VolumeRecord, WriterState } from '../domain/recovery.ts';
import type { TokenCeilings } from '../domain/token-ceilings.ts';
import type { Volume, VolumePolicy, Volumes } from '../domain/volume.ts';
import type { VolumeTitles } from '../domain/volume-title.ts';
import { AttributeCalls, hasAttributeLibrary } from './attribute-calls.ts';
import { fileCalls } from './file-calls.ts';
import type { FileSystem } from './file-system.ts';
import { openFileVolume } from './file-volume.ts';
import { Lane } from './lane.ts';
import type { StartMode } from './life/start-deps.ts';
import type { VolumeStartResult } from './life/start-report.ts';
import { startVolume } from './life/start-volume.ts';
import { SwitchedVolume } from './life/switched-volume.ts';
import { mountFactsOf } from './mount-facts.ts';
import { findOverlaps } from './overlap.ts';
import { type ProbeReport, probeVolume } from './probe.ts';
import { probeReadOnly } from './probe-read-only.ts';

export interface VolumeSetOptions {
  readonly policies: readonly VolumePolicy[];
  readonly clock: Clock;
  readonly random: Random;
  readonly titles: VolumeTitles;
  readonly journalUuid: string;
  readonly markedAsBackup: () => boolean;
  readonly record: (volume: string) => VolumeRecord;
  /** The highest mark or floor that the journal has for a volume. */
  readonly journalKnows: (volume: string) => bigint | null;
  readonly writerOf: (incarnation: string) => WriterState;
  /** The journal that had the volume before ours; `null`: none. */
  readonly takenFrom: (volume: string) => string | null;
  readonly endOldProcess: () => Promise<boolean>;
  /** The highest mtime that a commit on the volume ever had. */
  readonly lastMtimeNs: (volume: string) => bigint;
  /** What was last written to it, oldest first; asked for at each start of the volume. */
  readonly newestIntents: (volume: string) => readonly Intent[];
  readonly onChange: (volume: SwitchedVolume) => void;
  /** At each start of a volume, before it opens. */
  readonly onMount: (volume: string, mount: MountFacts) => void;
  /** So many attributes of a file were not carried over when its inode was replaced. */
  readonly onAttributesNotCarried: (volume: string, count: number) => void;
  readonly onStampFailure: (volume: string, thrown: unknown) => void;
  /** What file system a path is on; may hang. */
  readonly detectFileSystem: (path: string) => Promise<FileSystem>;
}

/** Every configured volume of a gateway, each with its own lane, and the token ceilings that they carry. */
export class VolumeSet implements Volumes, TokenCeilings {
  readonly #volumes = new Map<string, SwitchedVolume>();
  readonly #lanes = new Map<string, Lane>();
  readonly #attributes = new Map<string, AttributeCalls>();
  readonly #mounts = new Map<string, MountFacts>();
  readonly #options: VolumeSetOptions;

  constructor(options: VolumeSetOptions) {
    this.#options = options;
    for (const policy of options.policies) this.#volumes.set(policy.name, this.#made(policy));
  }

  get(name: string): SwitchedVolume {
    const volume = this.#volumes.get(name);
    if (volume === undefined) throw refuse('volume_not_found', 'There is no such volume.');
    return volume;
  }

  policy(name: string): VolumePolicy {
    return this.get(name).policy;
  }

  all(): readonly SwitchedVolume[] {
    return [...this.#volumes.values()];
  }

  reserve(volume: string, token: FencingToken): Promise<void> {
    return this.get(volume).reserve(token);
  }

  /** In-flight and waiting calls of each volume, for the metrics. */
  lanes(): ReadonlyMap<string, Lane> {
    return this.#lanes;
  }

  /** What a volume lies on, as found at its last start; `null` for one without files, or that never answered. */
  mount(name: string): MountFacts | null {
    return this.#mounts.get(name) ?? null;
  }

  /** Until `start` nobody touches one of them. */
  waitFor(reason: string): void {
    for (const volume of this.all()) volume.waitFor(reason);
  }

  /** Starts them side by side: one that hangs holds up nobody. Rejects when two of them overlap. */
  async start(): Promise<void> {
    await this.#refuseOverlaps();
    await Promise.all(this.all().map((volume) => volume.start()));
  }

  /** `null`: every one. See `SwitchedVolume.renew`. */
  renew(name: string | null): void {
    for (const volume of name === null ? this.all() : [this.get(name)]) volume.renew();
  }

  async stop(): Promise<void> {
    await Promise.all(this.all().map((volume) => volume.stop()));
    for (const attributes of this.#attributes.values()) attributes.end();
  }

  async #refuseOverlaps(): Promise<void> {
    const withFiles = this.all().flatMap(({ name, policy: { path } }) => (path === null ? [] : [{ name, path }]));
    // A missing or hung volume is not served, so it overlaps with nothing yet.
    const answered = await Promise.all(withFiles.map(({ name, path }) => this.#inTime(name, () => this.#options.detectFileSystem(path))));
    const [overlap] = await findOverlaps(withFiles.filter((_, index) => answered[index] !== null));
    if (overlap === undefined) return;
    const how = overlap.why === 'same_directory' ? 'are the same directory' : 'lie one inside the other';
    throw refuse('invalid_request', `The volumes ${overlap.first} and ${overlap.second} ${how}: one file would have two fences.`);
  }

  async #fileSystem({ name, path }: VolumePolicy): Promise<FileSystem | null> {
    if (path === null) return null;
    const fileSystem = await this.#inTime(name, () => this.#options.detectFileSystem(path));
    const mount = fileSystem === null ? null : await this.#inTime(name, () => mountFactsOf(path, fileSystem));
    if (mount !== null) {
      this.#mounts.set(name, mount);
      this.#options.onMount(name, mount);
    }
    return fileSystem;
  }

  /**
   * In the volume's lane: a volume that hangs is tried again for as long as it does, and each try outside of it would keep a thread of the
   * pool until the server is back. @returns `null` for one that is missing or does not answer.
   */
  #inTime<T>(name: string, look: () => Promise<T>): Promise<T | null> {
    return this.#lane(name)
      .run(look)
      .catch(() => null);
  }

  #lane(name: string): Lane {
    const lane = this.#lanes.get(name);
    if (lane === undefined) throw new Error('every volume has a lane');
    return lane;
  }

  #made(policy: VolumePolicy): SwitchedVolume {
    const { clock, onChange, titles } = this.#options;
    const lane = new Lane({
      volume: policy.name,
      inFlightMax: policy.limits.inFlight,
      queueMax: LIMITS.volumeQueueMax,
      deadlineMs: LIMITS.volumeCallDeadlineMs,
      clock,
    });
    this.#lanes.set(policy.name, lane);
    if (hasAttributeLibrary && policy.attributes === 'keep')
      this.#attributes.set(policy.name, new AttributeCalls((count) => this.#options.onAttributesNotCarried(policy.name, count)));
    const volume: SwitchedVolume = new SwitchedVolume({
      policy,
      clock,
      onChange,
      doubt: () => titles.doubt(policy.name),
      notice: () => this.#notice(policy.name),
      start: (mode) => this.#attempt(volume, lane, mode),
    });
    return volume;
  }

  #notice(name: string): string | null {
    const journal = this.#options.takenFrom(name);
    return journal === null ? null : `Taken over from the journal ${journal}: audit records and idempotency keys of before are there.`;
  }

  async #attempt(volume: SwitchedVolume, lane: Lane, mode: StartMode): Promise<VolumeStartResult> {
    const { policy } = volume;
    const { clock, random, titles, journalUuid, markedAsBackup, record, journalKnows, writerOf, endOldProcess, onStampFailure, onChange } =
      this.#options;
    // Unknown counts as a network: every call then goes through the lane, with its deadline.
    const fileSystem = await this.#fileSystem(policy);
    return startVolume<ProbeReport>(
      {
        policy,
        calls: fileCalls(fileSystem?.local ?? false, lane, this.#attributes.get(policy.name) ?? null),
        callsAbove: fileCalls(false, lane, null),
        titles,
        journalUuid,
        markedAsBackup,
        journalKnows: () => journalKnows(policy.name),
        record: record(policy.name),
        clock,
        random,
        writerOf,
        endOldProcess,
        onFenced: () => volume.reincarnate(),
        onStampFailure: (thrown) => onStampFailure(policy.name, thrown),
        probe: (calls, root, control) => (control === null ? probeReadOnly(calls, root) : probeVolume(calls, control, random)),
        openVolume: ({ room, fenceLevel, probe, life, onFenced }): Volume =>
          openFileVolume({
            policy,
            room,
            lane,
            fenceLevel,
            probe,
            life,
            clock,
            lastMtimeNs: this.#options.lastMtimeNs(policy.name),
            newestIntents: this.#options.newestIntents(policy.name),
            onFenced,
            onState: () => onChange(volume),
          }),
      },
      mode,
    );
  }
}

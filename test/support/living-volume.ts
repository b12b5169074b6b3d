import * as fs from 'node:fs';
import { join } from 'node:path';
import type { Intent } from '../../src/domain/intent.ts';
import type { OperationKnown } from '../../src/domain/journal.ts';
import type { SettledIntent, VolumeRecord, WriterState } from '../../src/domain/recovery.ts';
import { type Resource, resourceOf } from '../../src/domain/resource.ts';
import type { VolumePolicy } from '../../src/domain/volume.ts';
import { soleTitles, type VolumeTitles } from '../../src/domain/volume-title.ts';
import { fileCalls } from '../../src/storage/file-calls.ts';
import { type FileVolume, openFileVolume } from '../../src/storage/file-volume.ts';
import { Lane } from '../../src/storage/lane.ts';
import type { StartMode, VolumeStartDeps } from '../../src/storage/life/start-deps.ts';
import type { VolumeStartResult } from '../../src/storage/life/start-report.ts';
import { startVolume } from '../../src/storage/life/start-volume.ts';
import { type ProbeReport, probeVolume } from '../../src/storage/probe.ts';
import { testAttributes } from './attributes.ts';
import { FakeClock, seededRandom } from './fake-clock.ts';
import { KillSwitch } from './killed-calls.ts';
import { testPolicy } from './temp-volume.ts';
import { ON_NFS, removeTree, VOLUME_BASE } from './volume-base.ts';

/** What a journal would remember of one volume, kept while the processes over it come and go. */
export class MemoryRecord implements VolumeRecord {
  readonly directories: string[] = [];
  readonly intents: Intent[] = [];
  readonly known = new Set<string>();
  readonly ceilings = new Map<string, bigint>();
  readonly takeOvers: { readonly from: string; readonly floor: bigint }[] = [];
  outcomes: SettledIntent[] = [];
  /** The process that commits now; dies like its volume. */
  kill = new KillSwitch(0);

  async assertOurs(): Promise<void> {}
  incarnations(): readonly string[] {
    return [...this.directories];
  }
  unsettled(): readonly Intent[] {
    return [...this.intents];
  }
  knows(operationId: string): OperationKnown {
    if (this.intents.some((intent) => intent.operationId === operationId)) return 'unsettled';
    return this.known.has(operationId) ? 'settled' : 'never';
  }

  async published(incarnation: string): Promise<void> {
    this.kill.step();
    this.directories.push(incarnation);
  }

  async gone(incarnation: string): Promise<void> {
    this.kill.step();
    this.directories.splice(this.directories.indexOf(incarnation), 1);
  }

  reservedCeiling(volumeUuid: string): bigint | null {
    return this.ceilings.get(volumeUuid) ?? null;
  }

  async reserveCeiling(volumeUuid: string, ceiling: bigint): Promise<void> {
    this.kill.step();
    const before = this.ceilings.get(volumeUuid);
    if (before === undefined || before < ceiling) this.ceilings.set(volumeUuid, ceiling);
  }

  async takenOver(from: string, floor: bigint): Promise<void> {
    this.kill.step();
    this.takeOvers.push({ from, floor });
  }

  /** Outcomes are written down, but the intents stay unsettled until `forget`: recovery may be asked again. */
  async recovered(settled: readonly SettledIntent[]): Promise<void> {
    this.kill.step();
    this.outcomes = [...settled];
  }

  intend(...intents: readonly Intent[]): void {
    this.kill.step();
    for (const intent of intents) {
      this.intents.push(intent);
      this.known.add(intent.operationId);
    }
  }

  forget(): void {
    this.intents.length = 0;
  }
}

export type Opened = Extract<VolumeStartResult, { kind: 'open' }> & { readonly volume: FileVolume };

export interface Life {
  readonly killAt?: number;
  readonly owner?: string;
  readonly titles?: VolumeTitles;
  readonly journalUuid?: string;
  readonly journalKnows?: bigint | null;
  readonly backup?: boolean;
  readonly writer?: WriterState;
  readonly mode?: StartMode;
  readonly hardLinks?: boolean;
  /** Its calls are made as on a network mount. */
  readonly network?: boolean;
  readonly policy?: Partial<VolumePolicy>;
  readonly endOldProcess?: () => Promise<boolean>;
  readonly onFenced?: () => void;
}

/** A directory on a real file system that gateway processes start over, die over, and start over again. */
export class LivingVolume {
  readonly root: string;
  readonly record = new MemoryRecord();
  readonly clock = new FakeClock();
  /** The lane's own: real disk calls must not run over a deadline because a test moves the other one. */
  readonly laneClock = new FakeClock();
  kill = new KillSwitch(0);
  #seed: number;

  /** @param where `memory`: on tmpfs where there is one, for a test that starts and dies hundreds of times. */
  constructor(seed = 1, where: 'disk' | 'memory' = 'disk') {
    this.root = fs.mkdtempSync(join(where === 'memory' && !ON_NFS && fs.existsSync('/dev/shm') ? '/dev/shm' : VOLUME_BASE, 'fencegate-life-'));
    this.#seed = seed;
    this.clock.jumpWall(Date.now() + 60_000 - this.clock.wallMs());
  }

  deps(life: Life = {}): VolumeStartDeps<ProbeReport> {
    this.kill = this.record.kill = new KillSwitch(life.killAt ?? 0);
    const policy = testPolicy({ path: this.root, ...life.policy });
    const lane = new Lane({ volume: policy.name, inFlightMax: 8, queueMax: 1_024, deadlineMs: 4_000, clock: this.laneClock });
    this.#seed += 1;
    const random = seededRandom(this.#seed);
    return {
      policy,
      random,
      clock: this.clock,
      calls: this.kill.over(fileCalls(!ON_NFS && life.network !== true, lane, testAttributes)),
      callsAbove: fileCalls(false, lane, null),
      record: this.record,
      titles: life.titles ?? soleTitles(life.owner ?? 'gateway-1'),
      journalUuid: life.journalUuid ?? 'journal-1',
      journalKnows: () => life.journalKnows ?? null,
      markedAsBackup: () => life.backup ?? false,
      writerOf: () => life.writer ?? 'exited',
      endOldProcess: life.endOldProcess ?? (async () => false),
      probe: async (calls, _root, control) => ({
        ...(control === null ? READ_ONLY_PROBE : await probeVolume(calls, control, random)),
        ...(life.hardLinks === undefined ? {} : { hardLinks: life.hardLinks }),
      }),
      openVolume: (parts) => openFileVolume({ ...parts, lane, clock: this.clock, lastMtimeNs: 0n, newestIntents: [], onState: () => undefined }),
      onFenced: life.onFenced ?? (() => undefined),
      onStampFailure: () => undefined,
    };
  }

  start(life: Life = {}): Promise<VolumeStartResult> {
    return startVolume(this.deps(life), life.mode ?? 'plain');
  }

  /** Starts and insists that the volume opens. */
  async open(life: Life = {}): Promise<Opened> {
    const result = await this.start(life);
    if (result.kind !== 'open') throw new Error(`the volume is ${JSON.stringify(result)}`);
    return result as Opened;
  }

  path(...names: string[]): string {
    return join(this.root, ...names);
  }
  control(...names: string[]): string {
    return join(this.root, '.fencegate', ...names);
  }
  resource(path: string): Resource {
    return resourceOf('vol', path.split('/'), false);
  }

  read(name: string): string | null {
    try {
      return fs.readFileSync(this.path(name), 'utf8');
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw thrown;
    }
  }

  write(name: string, content: string): void {
    fs.writeFileSync(this.path(name), content);
  }

  /** The names in the newest incarnation directory. */
  own(): string[] {
    return fs.readdirSync(this.control(this.record.directories.at(-1) ?? ''));
  }

  incarnationDirectories(): string[] {
    return fs.readdirSync(this.control()).filter((name) => /^[0-9a-f]{32}$/.test(name));
  }

  remove(): void {
    removeTree(this.root);
  }
}

const READ_ONLY_PROBE: ProbeReport = {
  fileSystem: 'ext4',
  local: true,
  foldsCase: false,
  foldsUnicode: false,
  folds: false,
  hardLinks: false,
  reflink: false,
  mtimeGranularityNs: 1_000n,
  fenceHolds: false,
};

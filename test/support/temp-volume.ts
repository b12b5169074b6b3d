import * as fs from 'node:fs';
import { join } from 'node:path';
import { recordWith } from '../../src/domain/audit-record.ts';
import type { FileFacts, StagedFacts } from '../../src/domain/file-facts.ts';
import type { ApplyPlan, Intent, Settlement } from '../../src/domain/intent.ts';
import { type Resource, resourceOf } from '../../src/domain/resource.ts';
import type { VolumePolicy } from '../../src/domain/volume.ts';
import { DirectorySync } from '../../src/storage/directory-sync.ts';
import { fileCalls } from '../../src/storage/file-calls.ts';
import { type FileVolume, openFileVolume } from '../../src/storage/file-volume.ts';
import { Lane } from '../../src/storage/lane.ts';
import type { VolumeLife } from '../../src/storage/life/volume-life.ts';
import { Litter } from '../../src/storage/litter.ts';
import type { VolumeRoom } from '../../src/storage/room.ts';
import { testAttributes } from './attributes.ts';
import { FakeClock, settle } from './fake-clock.ts';
import { FaultCalls } from './fault-calls.ts';
import { sealAs } from './seal.ts';
import { ON_NFS, removeTree, VOLUME_BASE } from './volume-base.ts';

export interface TempVolumeOptions {
  /** A directory that exists (a mount of its own); a new one otherwise. */
  readonly root?: string;
  /** False: every call goes through the lane and the pool, as on a network mount. A new directory on NFS is never local. */
  readonly local?: boolean;
  readonly folds?: boolean;
  readonly hardLinks?: boolean;
  readonly reflink?: boolean;
  readonly policy?: Partial<VolumePolicy>;
  readonly life?: Partial<VolumeLife>;
  readonly lastMtimeNs?: bigint;
  readonly newestIntents?: readonly Intent[];
}

/** A volume over a real directory, with its incarnation directory, a clock that stands, and calls that a test may break. */
export interface TempVolume {
  readonly root: string;
  readonly incPath: string;
  readonly room: VolumeRoom;
  readonly lane: Lane;
  readonly clock: FakeClock;
  readonly faults: FaultCalls;
  readonly volume: FileVolume;
  /** What `life.settle` was asked, in order. */
  readonly settled: Intent[];
  /** What `life.settle` answers; `unknown` at first. */
  verdict: Settlement;
  /** What it says stands there. */
  found: FileFacts | null;
  /** How often the volume said that it was fenced. */
  fencedCount: number;
  path(name: string): string;
  resource(path: string): Resource;
  write(name: string, content: string | Uint8Array): FileFacts;
  /** What is in the incarnation directory. */
  staged(): string[];
  /** The directory is removed as a successor does it. */
  fence(): void;
  close(): Promise<void>;
}

export function testPolicy(policy: Partial<VolumePolicy> = {}): VolumePolicy {
  return {
    name: 'vol',
    path: '/',
    tokens: 'issued',
    requireToken: 'false',
    rangeWrites: 'copy-on-write',
    onCoordinatorLoss: 'refuse',
    hardLinks: 'refuse',
    names: 'portable',
    attributes: 'keep',
    readOnly: false,
    lease: { ttlMsMin: 1_000, ttlMsMax: 3_600_000, maxHoldMs: null, lockDelayMs: 0, infinite: false },
    limits: { bodyBytes: null, stagedBytes: null, inFlight: 8, queueLength: 1_000 },
    ...policy,
  };
}

export async function tempVolume(options: TempVolumeOptions = {}): Promise<TempVolume> {
  const root = options.root ?? fs.mkdtempSync(join(VOLUME_BASE, 'fencegate-volume-'));
  const incarnation = 'cafe0123cafe0123cafe0123cafe0123';
  const incPath = join(root, '.fencegate', incarnation);
  fs.mkdirSync(incPath, { recursive: true, mode: 0o700 });
  const clock = new FakeClock();
  clock.jumpWall(Date.now() + 60_000 - clock.wallMs());
  const lane = new Lane({ volume: 'vol', inFlightMax: 8, queueMax: 1_024, deadlineMs: 4_000, clock });
  const onNfs = ON_NFS && options.root === undefined;
  const faults = new FaultCalls(fileCalls(!onNfs && (options.local ?? true), lane, testAttributes));
  const { calls } = faults;
  const directory = fs.constants.O_RDONLY | fs.constants.O_DIRECTORY;
  const [rootDir, inc] = [await calls.openPath(root, directory), await calls.openPath(incPath, directory)];
  calls.touchAt(inc);
  // Its disk has answered, as after the first use: no test should find that call, or its descriptor, among its own.
  await lane.run(() => Promise.resolve(), { reachesDisk: true });
  const room: VolumeRoom = {
    name: 'vol',
    calls,
    root: rootDir,
    inc,
    incarnation,
    litter: new Litter(),
    dev: (await calls.fstat(inc)).dev,
    folds: options.folds ?? false,
    hardLinks: options.hardLinks ?? true,
    sync: new DirectorySync(calls),
    refuseOthers: null,
  };
  const settled: Intent[] = [];
  const life: VolumeLife = {
    settle: async (intent) => {
      settled.push(intent);
      return { settlement: temp.verdict, after: temp.found };
    },
    restore: async () => true,
    writeRedo: async () => undefined,
    writeManifest: async () => undefined,
    unlink: async () => undefined,
    ...options.life,
  };
  const volume = openFileVolume({
    policy: testPolicy({ path: root, ...options.policy }),
    room,
    lane,
    fenceLevel: 'incarnation',
    probe: { mtimeGranularityNs: 1_000n, reflink: options.reflink ?? false },
    life,
    clock,
    lastMtimeNs: options.lastMtimeNs ?? 0n,
    newestIntents: options.newestIntents ?? [],
    onFenced: () => {
      temp.fencedCount += 1;
    },
    onState: () => undefined,
  });
  // The first looks at its space and its path: no test should find these calls, or their descriptor in use, among its own.
  while (volume.space() === null || lane.inFlight > 0) await settle();
  const temp: TempVolume = {
    root,
    incPath,
    room,
    lane,
    clock,
    faults,
    volume,
    settled,
    verdict: 'unknown',
    found: null,
    fencedCount: 0,
    path: (name) => join(root, name),
    resource: (path) => resourceOf('vol', path.split('/'), room.folds),
    write: (name, content) => {
      fs.writeFileSync(join(root, name), content);
      return factsAt(join(root, name));
    },
    staged: () => fs.readdirSync(incPath),
    fence: () => {
      for (const name of fs.readdirSync(incPath)) fs.unlinkSync(join(incPath, name));
      fs.rmdirSync(incPath);
    },
    close: async () => {
      faults.heal();
      await volume.close();
      if (options.root === undefined) removeTree(root);
    },
  };
  return temp;
}

export function factsAt(path: string): FileFacts {
  const { ino, size, mtimeNs } = fs.statSync(path, { bigint: true });
  return { ino, sizeBytes: Number(size), mtimeNs };
}

/** What the record of a hand-made intent says. */
export const SAMPLE_RECORD = recordWith({
  at: '2026-01-01T00:00:00.000Z',
  action: 'put',
  volume: 'vol',
  path: 'a',
  outcome: 'committed',
  status: 200,
  operationId: 'op-1',
});

/** An intent as a verb would write it. */
export function intentOf(
  temp: TempVolume,
  path: string,
  plan: ApplyPlan,
  facts: { readonly before?: FileFacts | null; readonly staged?: StagedFacts | null } = {},
): Intent {
  return {
    operationId: 'op-1',
    resource: temp.resource(path),
    before: facts.before ?? null,
    staged: facts.staged ?? null,
    plan,
    incarnation: temp.room.incarnation,
    audit: SAMPLE_RECORD,
  };
}

/** Stages `content`, sealed and synced. */
export async function stageText(temp: TempVolume, content: string): Promise<StagedFacts> {
  const staging = await temp.volume.stage({ sha512: false });
  await staging.write(Buffer.from(content));
  const facts = await sealAs(temp.volume, staging, null);
  await staging.sync();
  return facts;
}

/** How many descriptors this process has open. */
export function openDescriptors(): number {
  return fs.readdirSync('/proc/self/fd').length;
}

/** Waits until as many are open as before: a place is closed in the background when its volume uses the pool. */
export async function descriptorsBack(count: number): Promise<void> {
  for (let turns = 0; turns < 5_000 && openDescriptors() !== count; turns++) await settle();
  if (openDescriptors() !== count) throw new Error(`${openDescriptors()} descriptors are open, not ${count}`);
}

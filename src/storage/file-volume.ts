import type { Clock } from '../domain/clock.ts';
import { GatewayError, refuse } from '../domain/errors.ts';
import type { FenceLevel } from '../domain/fence-level.ts';
import type { FileFacts, TargetFacts } from '../domain/file-facts.ts';
import type { Intent, Settled } from '../domain/intent.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Resource } from '../domain/resource.ts';
import type { OpenedFile, Place, Staging, Volume, VolumePolicy, VolumeState } from '../domain/volume.ts';
import type { VolumeSpace } from '../domain/volume-space.ts';
import { type ApplyRoom, applyIntent, outcomeUnknown } from './apply.ts';
import { LaneError, mapped } from './errno.ts';
import { Fence } from './fence.ts';
import { HungOperations } from './hung-operations.ts';
import { InPlaceWrites } from './in-place-writes.ts';
import { stagedName } from './incarnation-names.ts';
import type { Lane } from './lane.ts';
import { Tidying } from './life/tidying.ts';
import type { VolumeLife } from './life/volume-life.ts';
import { type ListingPage, listDirectory } from './listing.ts';
import { MadeDirectories } from './made-directories.ts';
import { makeParents } from './make-parents.ts';
import { MovedNames } from './moved-names.ts';
import { OwnVersions } from './own-versions.ts';
import { type HeldPlace, held, walkTo } from './path-walk.ts';
import type { ProbeReport } from './probe.ts';
import { openFile, type ReadingRoom } from './reading.ts';
import type { VolumeRoom } from './room.ts';
import { RootWatch } from './root-watch.ts';
import { SpaceWatch } from './space-watch.ts';
import { type CopyOptions, stageCopy } from './stage-copy.ts';
import { type StagingRoom, stageEmpty } from './staging.ts';
import { SyncFailures } from './sync-failures.ts';
import { lookAt } from './target.ts';
import { VersionClock } from './version-clock.ts';
import { VolumeCondition } from './volume-condition.ts';

/** An open volume's facts, established at start: it is fenced, owned, probed, recovered. */
export interface FileVolumeOptions {
  readonly policy: VolumePolicy;
  readonly room: VolumeRoom;
  readonly lane: Lane;
  readonly fenceLevel: FenceLevel;
  readonly probe: Pick<ProbeReport, 'mtimeGranularityNs' | 'reflink'>;
  readonly life: VolumeLife;
  readonly clock: Clock;
  /** The highest mtime that a commit on this volume ever had, and what was written last, oldest first. */
  readonly lastMtimeNs: bigint;
  readonly newestIntents: readonly Intent[];
  /** Called once, when this process finds out that it was superseded: serve the volume no more. */
  readonly onFenced: () => void;
  /** What `state` says has changed by itself. */
  readonly onState: () => void;
}

/** A volume over a real directory. It wires the parts of this room together; each rule lives in its own file. */
export class FileVolume implements Volume {
  readonly policy: VolumePolicy;
  readonly fenceLevel: FenceLevel;
  readonly #room: VolumeRoom;
  readonly #lane: Lane;
  readonly #life: VolumeLife;
  readonly #fence: Fence;
  readonly #versions: VersionClock;
  readonly #staging: StagingRoom;
  readonly #reading: ReadingRoom;
  readonly #applying: ApplyRoom;
  readonly #tidying: Tidying;
  readonly #space: SpaceWatch;
  readonly #root: RootWatch;
  readonly #condition: VolumeCondition;
  readonly #made: MadeDirectories;
  readonly #moved: MovedNames;
  readonly #inPlace = new InPlaceWrites();
  readonly #visible = new Map<string, number>();
  readonly #hung = new HungOperations();
  readonly #syncs = new SyncFailures();
  #stagedCount = 0;

  constructor(options: FileVolumeOptions) {
    const { room, clock } = options;
    this.policy = options.policy;
    this.fenceLevel = options.fenceLevel;
    this.#room = room;
    this.#lane = options.lane;
    this.#life = options.life;
    this.#made = new MadeDirectories(room);
    this.#moved = new MovedNames((name) => options.life.unlink(name));
    this.#space = new SpaceWatch({ calls: room.calls, root: room.root, clock });
    this.#fence = new Fence(room, options.onFenced);
    this.#root = new RootWatch({
      volume: this.name,
      calls: room.calls,
      path: rootPath(options.policy),
      root: room.root,
      writes: !options.policy.readOnly,
      clock,
      onAway: () => this.#fence.look(),
      onChange: options.onState,
    });
    this.#condition = new VolumeCondition({ policy: options.policy, fence: this.#fence, lane: options.lane, root: this.#root, syncs: this.#syncs });
    this.#versions = new VersionClock(room.calls, { lastMtimeNs: options.lastMtimeNs, granularityNs: options.probe.mtimeGranularityNs });
    this.#tidying = new Tidying({ clock, unlink: (name) => this.#moved.unlink(name), isFenced: () => this.#fence.fenced });
    this.#staging = {
      room,
      versions: this.#versions,
      fence: this.#fence,
      reflink: options.probe.reflink,
      nextName: () => stagedName(room.incarnation, ++this.#stagedCount),
      onSyncFailed: (thrown) => this.#syncs.ofData(thrown),
    };
    this.#reading = {
      room,
      clock,
      inPlace: this.#inPlace,
      ownVersions: new OwnVersions(options.newestIntents),
      visibleBytes: (resource) => this.#visible.get(resource.key) ?? null,
    };
    this.#applying = {
      room,
      fence: this.#fence,
      inPlace: this.#inPlace,
      settle: (intent) => this.settle(intent),
      onHung: (operationId, ended) => this.#hung.add(operationId, ended),
    };
  }

  get name(): string {
    return this.policy.name;
  }

  get folds(): boolean {
    return this.#room.folds;
  }

  get incarnation(): string {
    return this.#room.incarnation;
  }

  /** The highest mtime given out so far; kept in the journal for the next start. */
  get lastMtimeNs(): bigint {
    return this.#versions.lastMtimeNs;
  }

  state(): { readonly state: VolumeState; readonly reason: string | null } {
    return this.#condition.state();
  }

  assertWritable(): void {
    this.#condition.assertWritable();
  }

  space(): VolumeSpace | null {
    return this.#space.latest;
  }

  locate(resource: Resource): Promise<HeldPlace> {
    return this.#condition.reading(() => walkTo(this.#room, resource));
  }

  look(place: Place): Promise<TargetFacts | null> {
    return this.#condition.reading(async () => this.#moved.without(await lookAt(this.#room, held(place))));
  }

  async makeParents(place: Place): Promise<HeldPlace> {
    return this.#condition.writing(() => makeParents(this.#room, held(place)));
  }

  async stage(options: { readonly sha512: boolean }): Promise<Staging> {
    return this.#condition.writing(() => {
      if (this.#lane.breaker === 'closed') this.#room.litter.sweep();
      return stageEmpty(this.#staging, { hash: true, sha512: options.sha512 });
    });
  }

  async stageCopy(place: Place, facts: TargetFacts, options: CopyOptions, signal: AbortSignal): Promise<Staging> {
    const reader = this.#inPlace.enter(facts.ino);
    try {
      const copy = await this.#condition.writing(() => stageCopy(this.#staging, held(place).at, facts, options, signal));
      if (!reader.cut) return copy;
      await copy.discard();
      throw new GatewayError('volume_unavailable', { detail: 'The file was changed in place while it was copied.', retryAfterMs: 1_000 });
    } finally {
      reader.leave();
    }
  }

  async apply(intent: Intent, place: Place, from: Place | null): Promise<void> {
    // A successor has the intent too and may have finished it.
    if (this.#fence.fenced) throw outcomeUnknown(intent, this.#fence.refusal());
    const to = held(place);
    const apply = (): Promise<void> => applyIntent(this.#applying, intent, to, from === null ? null : held(from));
    await this.#made.around(intent, to, () => this.#condition.writing(apply));
    this.#finished(intent, null);
  }

  /** Rejects with `outcome_unknown`: the name is changed, and whether that is durable is not known. The caller adds its operation. */
  async syncParent(place: Place): Promise<void> {
    const { dir, parent } = held(place);
    if (dir === null || parent === null) throw refuse('not_found', 'The parent directory does not exist.');
    try {
      await this.#room.sync.syncAs(`${parent.dev}:${parent.ino}`, dir);
    } catch (thrown) {
      this.#syncs.ofDirectory(thrown);
      throw new GatewayError('outcome_unknown', {
        detail: 'The volume did not say whether the change of a name is durable.',
        retryAfterMs: LIMITS.settleRetryMs,
        cause: thrown,
      });
    }
  }

  async restore(intents: readonly Intent[]): Promise<boolean> {
    if (intents.some(({ operationId }) => this.#hung.has(operationId)) || this.#fence.fenced || this.#root.isAway) return false;
    const restored = await mapped(() => this.#life.restore(intents));
    if (!restored) return false;
    for (const { operationId, resource } of intents) {
      this.#reading.ownVersions.forget(resource.key);
      await this.#made.undone(operationId);
    }
    return true;
  }

  async writeRedo(intent: Intent): Promise<void> {
    return this.#condition.writing(() => this.#life.writeRedo(intent).catch((thrown: unknown) => this.#fence.judge(thrown)));
  }

  async writeManifest(operationId: string, intents: readonly Intent[], places: readonly Place[]): Promise<void> {
    return this.#condition.writing(() =>
      this.#life.writeManifest(operationId, intents, places.map(held)).catch((thrown: unknown) => this.#fence.judge(thrown)),
    );
  }

  tidy(intents: readonly Intent[]): void {
    for (const { operationId } of intents) this.#made.forget(operationId);
    this.#tidying.add(intents);
  }

  /** While a call of the operation is still in the kernel it may land after we looked, so nothing that is seen is final. */
  async settle(intent: Intent): Promise<Settled> {
    if (this.#hung.has(intent.operationId) || this.#condition.provesNothing) return { settlement: 'unknown', after: null };
    try {
      const settled = await mapped(() => this.#life.settle(intent));
      const { settlement, after } = settled;
      if (settlement === 'committed' || settlement === 'finished') this.#finished(intent, after);
      else if (settlement === 'aborted') await this.#dropped(intent);
      return settled;
    } catch (thrown) {
      // Finishing it hung in its turn.
      if (thrown instanceof LaneError && thrown.started) this.#hung.add(intent.operationId, thrown.ended);
      throw thrown;
    }
  }

  limitVisible(resource: Resource, visibleBytes: number | null): void {
    if (visibleBytes === null) this.#visible.delete(resource.key);
    else this.#visible.set(resource.key, visibleBytes);
  }

  open(resource: Resource): Promise<OpenedFile> {
    return this.#condition.reading(() => openFile(this.#reading, resource));
  }

  list(directory: Resource | null, page: { readonly limit: number; readonly cursor: string | null }): Promise<ListingPage> {
    return this.#condition.reading(() => listDirectory(this.#room, directory, page));
  }

  /** Gives the two held directories back. After this no call may be made; a call that still hangs keeps its descriptor. */
  async close(): Promise<void> {
    this.#tidying.stop();
    this.#space.stop();
    this.#root.stop();
    const { calls, root, inc } = this.#room;
    for (const directory of new Set([root, inc])) await calls.close(directory).catch(() => undefined);
  }

  #finished(intent: Intent, found: FileFacts | null): void {
    if (this.#room.hardLinks) this.#moved.applied(intent);
    this.#inPlace.end(intent.operationId);
    this.#reading.ownVersions.committed(intent, found);
  }

  async #dropped(intent: Intent): Promise<void> {
    this.#inPlace.end(intent.operationId);
    this.#reading.ownVersions.forget(intent.resource.key);
    await this.#made.undone(intent.operationId);
  }
}

function rootPath({ name, path }: VolumePolicy): string {
  if (path === null) throw new Error(`the volume ${name} has no files`);
  return path;
}

/** Builds an open volume from facts that were established at start. */
export function openFileVolume(options: FileVolumeOptions): FileVolume {
  return new FileVolume(options);
}

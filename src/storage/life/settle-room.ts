import { GatewayError, refuse } from '../../domain/errors.ts';
import type { FileFacts, TargetFacts } from '../../domain/file-facts.ts';
import { sameVersion } from '../../domain/file-facts.ts';
import type { Settled, Settlement } from '../../domain/intent.ts';
import type { WriterState } from '../../domain/recovery.ts';
import type { Resource } from '../../domain/resource.ts';
import { classify } from '../errno.ts';
import type { HeldPlace } from '../path-walk.ts';
import type { VolumeRoom } from '../room.ts';
import type { IncarnationDirectory } from './incarnation-directory.ts';
import type { Rolls } from './rolls.ts';

/** What looking at an intent's target, and finishing it, needs. */
export interface SettleRoom {
  readonly room: VolumeRoom;
  readonly directory: IncarnationDirectory;
  /** Whether a successor has removed the own directory. */
  readonly isFenced: () => Promise<boolean>;
  readonly locate: (resource: Resource) => Promise<HeldPlace>;
  readonly look: (place: HeldPlace) => Promise<TargetFacts | null>;
  /** Closes the place it is given. */
  readonly makeParents: (place: HeldPlace) => Promise<HeldPlace>;
  /** Whether the intent of that operation on that path awaits its verdict. */
  readonly isUnsettled: (operationId: string, path: string) => boolean;
  readonly writerOf: (incarnation: string) => WriterState;
  /** `digest` after a start: the staged file's sync ran beside the intent's, so its bytes may have been lost. */
  readonly verify: 'facts' | 'digest';
  /** False: somebody else was granted leases meanwhile, so a change of a name that is missing stays away. */
  readonly finishes: boolean;
  /** What the intents of one operation share. */
  readonly rolls: Rolls;
}

export function settled(settlement: Settlement, after: FileFacts | null): Settled {
  return { settlement, after };
}

const BLOCKED_WAY = new Set(['symbolic_link', 'not_a_directory', 'name_alias', 'cross_volume', 'invalid_path']);

/** Runs `judge` at the resource's place. A way that has become impassable (somebody changed the tree) proves nothing: `unknown`. */
export async function atPlace(deps: SettleRoom, resource: Resource, judge: (spot: Spot) => Promise<Settled>): Promise<Settled> {
  let place: HeldPlace;
  try {
    place = await deps.locate(resource);
  } catch (thrown) {
    if (thrown instanceof GatewayError && BLOCKED_WAY.has(thrown.code)) return settled('unknown', null);
    throw thrown;
  }
  const spot = new Spot(deps, place);
  try {
    return await judge(spot);
  } finally {
    spot.close();
  }
}

/** One target that is being judged: its place may be made anew when its parents are. */
export class Spot {
  readonly #deps: SettleRoom;
  #place: HeldPlace;

  constructor(deps: SettleRoom, place: HeldPlace) {
    this.#deps = deps;
    this.#place = place;
  }

  get at(): HeldPlace['at'] {
    return this.#place.at;
  }

  get hasParent(): boolean {
    return this.#place.dir !== null;
  }

  look(): Promise<TargetFacts | null> {
    return this.hasParent ? this.#deps.look(this.#place) : Promise.resolve(null);
  }

  async withParents(): Promise<void> {
    if (!this.hasParent) this.#place = await this.#deps.makeParents(this.#place);
  }

  /** Durable before anybody is told that it happened (trap F1). */
  async sync(): Promise<void> {
    const { dir } = this.#place;
    if (dir !== null) await this.#deps.room.sync.sync(dir);
  }

  close(): void {
    this.#place.close();
  }
}

/** Whether `now` is what the intent's `before` says. */
export function isBefore(now: TargetFacts | null, before: FileFacts | null): boolean {
  if (now === null || before === null) return now === null && before === null;
  return now.kind === 'file' && sameVersion(now, before);
}

export function isVersion(now: TargetFacts | null, version: FileFacts | null): boolean {
  return now !== null && version !== null && now.kind === 'file' && sameVersion(now, version);
}

export function isInode(now: TargetFacts | null, ino: bigint): boolean {
  return now !== null && now.kind === 'file' && now.ino === ino;
}

export type Change = 'made' | 'refused' | 'unknown';

/**
 * Makes one change of a name while settling. `refused`: the error proves that nothing changed, once a look that follows shows no change
 * either; every caller looks. A change that failed because the own directory is gone rejects with `volume_unavailable`: somebody else
 * settles now.
 */
export async function change(deps: SettleRoom, make: () => Promise<void>): Promise<Change> {
  if (!deps.finishes) return 'refused';
  try {
    await make();
    return 'made';
  } catch (thrown) {
    return afterFailure(deps, thrown);
  }
}

export async function afterFailure(deps: SettleRoom, thrown: unknown): Promise<'refused' | 'unknown'> {
  const verdict = classify(thrown, deps.room.calls.local);
  if (verdict === 'fenced_candidate' && (await deps.isFenced()))
    throw refuse('volume_unavailable', `The volume ${deps.room.name} was taken over by another incarnation.`);
  if (thrown instanceof GatewayError && thrown.code === 'volume_unavailable') throw thrown;
  return verdict === 'definite' || verdict === 'answered' ? 'refused' : 'unknown';
}

import type { FenceLevel } from './fence-level.ts';
import type { StagedFacts, TargetFacts } from './file-facts.ts';
import type { Intent, Settled } from './intent.ts';
import type { Resource } from './resource.ts';
import type { VolumeSpace } from './volume-space.ts';

/** The settings of one volume (`http-api.md`, Configuration). */
export interface VolumePolicy {
  readonly name: string;
  /** `null`: lock-only, there is nothing to write. */
  readonly path: string | null;
  readonly tokens: 'issued' | 'signed';
  readonly requireToken: 'false' | 'once_leased' | 'true';
  readonly rangeWrites: 'copy-on-write' | 'in-place';
  readonly onCoordinatorLoss: 'refuse' | 'finish_held';
  readonly hardLinks: 'refuse' | 'split';
  /** What files and directories that are made may be called; those that are there keep their names. */
  readonly names: 'portable' | 'any';
  /** Whether a file keeps ACL, label and extended attributes when its inode is replaced. */
  readonly attributes: 'keep' | 'drop';
  readonly readOnly: boolean;
  readonly lease: {
    readonly ttlMsMin: number;
    readonly ttlMsMax: number;
    readonly maxHoldMs: number | null;
    readonly lockDelayMs: number;
    readonly infinite: boolean;
  };
  readonly limits: {
    readonly bodyBytes: number | null;
    readonly stagedBytes: number | null;
    readonly inFlight: number;
    readonly queueLength: number;
  };
}

/** A name in a directory whose descriptor is held, found without following a link. Must be closed. */
export interface Place {
  readonly resource: Resource;
  /** The parent's identity, compared again in the commit section (trap F24); `null` when the parent is missing. */
  readonly parent: { readonly dev: bigint; readonly ino: bigint } | null;
  /** The names of the directories on the way to the parent, and of the parent, that are not there. */
  readonly missing: readonly string[];
  close(): void;
}

/** A file that is being written in the incarnation directory. Exactly one of a discard or an apply ends it. */
export interface Staging {
  readonly name: string;
  /** In whose directory it is: it goes on under that one only. */
  readonly incarnation: string;
  readonly bytesWritten: number;
  /** Appends; counts and hashes. Rejects with `insufficient_storage` or `volume_unavailable`. */
  write(chunk: Uint8Array): Promise<void>;
  /**
   * Ends writing: gives the file the rights of the one that it replaces at `place`, or those that a new file has there, sets an mtime that
   * no earlier commit of this volume has, and reads back the facts that will be the ETag. Not durable yet.
   */
  seal(replaces: TargetFacts | null, place: Place): Promise<StagedFacts>;
  /** Lower-case hex of what was written; `sha-512` only when asked for when staging began. */
  digest(algorithm: 'sha-256' | 'sha-512'): string;
  /** fsync. A failure is final (trap F3): the staged file is dropped by the caller. */
  sync(): Promise<void>;
  /** Closes and unlinks. Never rejects; what is left is swept at the next start. */
  discard(): Promise<void>;
  /** The same where the next start may find its intent. True once it is gone for good, also over a power cut; never rejects. */
  discardForGood(): Promise<boolean>;
}

export interface DirectoryEntry {
  /** `null` when the name is not UTF-8; then `nameBase64` has it. */
  readonly name: string | null;
  readonly nameBase64: string | null;
  readonly type: 'file' | 'directory' | 'symbolic_link' | 'special';
  readonly sizeBytes: number | null;
  readonly modifiedAt: string | null;
}

/** One descriptor per answer: a replace that happens meanwhile is not seen. Must be closed. */
export interface OpenedFile {
  readonly facts: TargetFacts;
  /** The ETag header's value: weak when others changed the file less than 2 s ago. */
  readonly etag: string;
  /** Yields `end - start` bytes; throws when the file got shorter, or was changed in place meanwhile (`range_writes: in-place`). */
  read(start: number, end: number, signal: AbortSignal): AsyncIterable<Uint8Array>;
  close(): Promise<void>;
}

export type VolumeState = 'open' | 'read_only' | 'closed' | 'unavailable' | 'lock_only';

/**
 * A volume as the write protocol sees it. Every call is bounded by the volume's lane (in-flight limit, deadline, breaker) and
 * rejects with `volume_unavailable` when the lane is shut. Apply calls look for themselves after an error that proves nothing:
 * they resolve (it happened), reject with a definite code (it did not), or reject with `outcome_unknown`.
 */
export interface Volume {
  readonly name: string;
  readonly policy: VolumePolicy;
  /** Whether names fold here (or may): the fence key is then coarser than the name. */
  readonly folds: boolean;
  readonly fenceLevel: FenceLevel;
  readonly incarnation: string;
  state(): { readonly state: VolumeState; readonly reason: string | null };
  /** As of the last look, from memory; `null` when there is none: lock-only, closed, hung. */
  space(): VolumeSpace | null;
  /** Throws `volume_unavailable`, `volume_read_only` (403). */
  assertWritable(): void;

  /**
   * Walks to the parent by descriptors. Rejects with `symbolic_link`, `not_a_directory`, `name_alias`, `cross_volume` (another
   * device than the incarnation directory). A missing parent is not an error: `place.parent` is `null`.
   */
  locate(resource: Resource): Promise<Place>;
  /** Opens without following and without blocking, then `fstat`; `null` when absent. Fails closed: any other error rejects. */
  look(place: Place): Promise<TargetFacts | null>;
  /** Makes the missing parents, synced, and returns the place again; the old one is closed. */
  makeParents(place: Place): Promise<Place>;

  stage(options: { readonly sha512: boolean }): Promise<Staging>;
  /**
   * A new staged file with the bytes of the target (reflink or server-side copy where there is one) and, over them from
   * `overlay.offset`, the bytes of another staged file. With `hash` the digests of the whole result are computed. Stops on `signal`.
   */
  stageCopy(
    place: Place,
    facts: TargetFacts,
    options: { readonly overlay: { readonly staged: Staging; readonly offset: number } | null; readonly hash: boolean; readonly sha512: boolean },
    signal: AbortSignal,
  ): Promise<Staging>;

  /** Carries out `intent.plan`; for `move`, `from` is the place of the old name. */
  apply(intent: Intent, place: Place, from: Place | null): Promise<void>;
  /** After a definite failure half-way through `several`: puts the old files back. True when all are as they were before. */
  restore(intents: readonly Intent[]): Promise<boolean>;
  /** Durable names: fsync of the parent, shared with everybody who waits for the same directory. */
  syncParent(place: Place): Promise<void>;
  /** Writes the redo entry (append, in-place) durably beside the staged file; part of staging, before the intent. */
  writeRedo(intent: Intent): Promise<void>;
  /** Writes and syncs a manifest; `links` keeps the old files of `several`. */
  writeManifest(operationId: string, intents: readonly Intent[], places: readonly Place[]): Promise<void>;
  /**
   * Once for all intents of an operation, after its outcome is known: unlinks trash, redo, manifest and kept old files. In the background,
   * behind the calls of others; what fails is tried again until the volume is closed.
   */
  tidy(intents: readonly Intent[]): void;
  /** Looks at the volume and says what became of an intent; finishes it when that is safe. */
  settle(intent: Intent): Promise<Settled>;
  /** While an append is unsettled, bytes above `visibleBytes` are hidden from readers; `null` lifts it. */
  limitVisible(resource: Resource, visibleBytes: number | null): void;

  open(resource: Resource): Promise<OpenedFile>;
  list(
    directory: Resource | null,
    page: { readonly limit: number; readonly cursor: string | null },
  ): Promise<{ readonly entries: readonly DirectoryEntry[]; readonly nextCursor: string | null }>;
}

export interface Volumes {
  /** Throws `volume_not_found`. */
  get(name: string): Volume;
  policy(name: string): VolumePolicy;
  all(): readonly Volume[];
}

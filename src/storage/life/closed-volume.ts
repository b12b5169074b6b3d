import { GatewayError } from '../../domain/errors.ts';
import type { FenceLevel } from '../../domain/fence-level.ts';
import type { Settled } from '../../domain/intent.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { DirectoryEntry, OpenedFile, Place, Staging, Volume, VolumePolicy, VolumeState } from '../../domain/volume.ts';

/** A volume that cannot be used: not started yet, missing, hung, somebody else's, or one without files. Says why; never touches it. */
export class ClosedVolume implements Volume {
  readonly policy: VolumePolicy;
  readonly folds = false;
  readonly fenceLevel: FenceLevel = 'token';
  readonly incarnation = '';
  readonly #state: VolumeState;
  readonly #reason: string;

  constructor(policy: VolumePolicy, state: 'closed' | 'unavailable' | 'lock_only', reason: string) {
    this.policy = policy;
    this.#state = state;
    this.#reason = reason;
  }

  get name(): string {
    return this.policy.name;
  }

  state(): { readonly state: VolumeState; readonly reason: string | null } {
    return { state: this.#state, reason: this.#reason };
  }

  space(): null {
    return null;
  }

  assertWritable(): void {
    throw this.#refusal();
  }

  locate(): Promise<Place> {
    return this.#refused();
  }
  look(): Promise<never> {
    return this.#refused();
  }
  makeParents(): Promise<Place> {
    return this.#refused();
  }
  stage(): Promise<Staging> {
    return this.#refused();
  }
  stageCopy(): Promise<Staging> {
    return this.#refused();
  }
  apply(): Promise<void> {
    return this.#refused();
  }
  restore(): Promise<boolean> {
    return this.#refused();
  }
  syncParent(): Promise<void> {
    return this.#refused();
  }
  writeRedo(): Promise<void> {
    return this.#refused();
  }
  writeManifest(): Promise<void> {
    return this.#refused();
  }
  settle(): Promise<Settled> {
    return this.#refused();
  }
  open(): Promise<OpenedFile> {
    return this.#refused();
  }
  list(): Promise<{ readonly entries: readonly DirectoryEntry[]; readonly nextCursor: string | null }> {
    return this.#refused();
  }

  /** Swept when the volume starts. */
  tidy(): void {}

  limitVisible(): void {}

  #refused(): Promise<never> {
    return Promise.reject(this.#refusal());
  }

  #refusal(): GatewayError {
    return new GatewayError('volume_unavailable', {
      detail: `The volume ${this.name} is not available: ${this.#reason}`,
      retryAfterMs: LIMITS.volumeRetryMsMin,
    });
  }
}

/** A volume without files, as long as it may be locked. */
export function lockOnly(policy: VolumePolicy): ClosedVolume {
  return new ClosedVolume(policy, 'lock_only', 'It has no files; it can only be locked.');
}

export function unopened(volume: string, reason: string | null): GatewayError {
  const detail = `The volume ${volume} is not open: ${reason ?? 'it is closed'}`;
  return new GatewayError('volume_unavailable', { detail, retryAfterMs: LIMITS.volumeRetryMsMin });
}

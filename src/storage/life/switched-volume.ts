import { commitDeadlineMs } from '../../domain/commit-deadline.ts';
import { asGatewayError, GatewayError } from '../../domain/errors.ts';
import type { FenceLevel } from '../../domain/fence-level.ts';
import type { TargetFacts } from '../../domain/file-facts.ts';
import type { Intent, Settled } from '../../domain/intent.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { StampVerdict, VolumeFinding } from '../../domain/recovery.ts';
import type { Resource } from '../../domain/resource.ts';
import type { OpenedFile, Place, Staging, Volume, VolumePolicy, VolumeState } from '../../domain/volume.ts';
import type { VolumeSpace } from '../../domain/volume-space.ts';
import { within } from '../../domain/within.ts';
import { ClosedVolume, lockOnly, unopened } from './closed-volume.ts';
import { asksForRebase } from './opened-stamp.ts';
import type { StartMode } from './start-deps.ts';
import type { VolumeStartResult } from './start-report.ts';
import { StartRetries } from './start-retries.ts';
import type { SwitchedVolumeOptions } from './switched-volume-options.ts';

const STOPPED = 'The gateway is shutting down.';

/**
 * One configured volume for as long as the process lives. What serves behind it changes: nothing yet, an open volume, a closed one,
 * the next incarnation of it. A volume that is missing or hangs is tried again in the background and holds up nobody else.
 */
export class SwitchedVolume implements Volume {
  readonly policy: VolumePolicy;
  readonly #options: SwitchedVolumeOptions;
  #current: Volume;
  #result: VolumeStartResult | null = null;
  #starting: Promise<VolumeStartResult> | null = null;
  readonly #retries: StartRetries;
  #mustRebase: string | null = null;
  #notice: string | null = null;
  /** Entries that findings spoke of and that are gone since. */
  readonly #removed = new Set<string>();
  #stopped = false;
  /** Why it must not be touched yet. */
  #waitsFor: string | null = null;

  constructor(options: SwitchedVolumeOptions) {
    this.#options = options;
    this.policy = options.policy;
    this.#retries = new StartRetries(options.clock, () => this.reincarnate());
    this.#current =
      options.policy.path === null ? lockOnly(options.policy) : new ClosedVolume(options.policy, 'unavailable', 'It has not been started yet.');
  }

  get name(): string {
    return this.policy.name;
  }
  get folds(): boolean {
    return this.#current.folds;
  }
  get fenceLevel(): FenceLevel {
    return this.#current.fenceLevel;
  }
  get incarnation(): string {
    return this.#current.incarnation;
  }
  get findings(): readonly VolumeFinding[] {
    const found = this.#result === null || this.#result.kind === 'lock_only' ? [] : this.#result.findings;
    // But for those whose directory was removed, and what the rebase that it asked for mended.
    return found.filter((finding) => !this.#removed.has(finding.entry ?? '') && (this.#mustRebase !== null || !asksForRebase(finding)));
  }
  get ownedByAnother(): boolean {
    const result = this.#result;
    return (result?.kind === 'closed' || result?.kind === 'unavailable') && result.ownedByAnother;
  }
  get verdict(): StampVerdict | null {
    return this.#result?.kind === 'open' ? this.#result.verdict : null;
  }
  get volumeUuid(): string | null {
    return this.#result?.kind === 'open' ? this.#result.volumeUuid : null;
  }
  /** The highest ceiling found on the volume at its last start; `null` while it is not open. */
  get ceilingFound(): bigint | null {
    return this.#result?.kind === 'open' ? this.#result.ceilingFound : null;
  }

  /** Until `start` nothing of it is touched, whoever asks. */
  waitFor(reason: string): void {
    this.#waitsFor = reason;
    if (this.policy.path !== null) this.#become(new ClosedVolume(this.policy, 'unavailable', reason), null);
  }

  /** The first attempt; when it finds the volume unavailable, more follow by themselves. */
  async start(): Promise<void> {
    this.#waitsFor = null;
    await this.#attempt('plain');
  }

  /**
   * The title of before is void (another coordinator session, or somebody took it away): a new incarnation, under a title of its own.
   * A start under way may have asked for its title too early, so another one follows it. What is open goes on being read meanwhile;
   * without a title nobody is granted anything to write with.
   */
  renew(): void {
    if (this.#stopped) return;
    void this.#again('plain', { reads: true }).catch((thrown: unknown) => this.#later(asGatewayError(thrown).message));
  }

  /** The own directory was found removed: what served ends, and a new incarnation is started. Asking again meanwhile joins in. */
  reincarnate(): void {
    if (this.#stopped || this.#starting !== null || this.#retries.waits) return;
    void this.#attempt('plain').catch((thrown: unknown) => this.#later(asGatewayError(thrown).message));
  }

  /**
   * Tries again now, in the given mode: `rebase` and `adopt` clear every incarnation directory there is. Rejects with `volume_unavailable`
   * when the volume does not open.
   */
  async restart(mode: StartMode): Promise<void> {
    if (this.#waitsFor !== null) throw unopened(this.name, this.#waitsFor);
    const result = await this.#again(mode);
    if (result.kind !== 'open') throw unopened(this.name, result.kind === 'lock_only' ? 'it has no files' : result.reason);
  }

  /** Durable stamp under our journal's name above `base`; then writes are allowed again. */
  async rebase(base: bigint): Promise<void> {
    if (this.#result?.kind !== 'open') throw unopened(this.name, this.state().reason);
    await this.#result.stamp?.rebase(base);
    this.#mustRebase = null;
    this.#options.onChange(this);
  }

  /** Removes a directory that a finding speaks of, if nothing is in it. False: something is, or there is no such finding. */
  async removeUnknownDirectory(entry: string): Promise<boolean> {
    if (this.#result?.kind !== 'open' || !this.findings.some((finding) => finding.entry === entry)) return false;
    if (!(await this.#result.removeEmpty(entry))) return false;
    this.#removed.add(entry);
    return true;
  }

  /** Resolves when the durable ceiling on the volume covers the token; a lock-only volume has none to cover. */
  async reserve(token: bigint): Promise<void> {
    if (this.policy.path === null) return;
    if (this.#result?.kind !== 'open') throw unopened(this.name, this.state().reason);
    await this.#result.stamp?.reserve(token);
  }

  /** True when `reserve` would resolve at once. */
  covers(token: bigint): boolean {
    return this.policy.path === null || (this.#result?.kind === 'open' && (this.#result.stamp?.covers(token) ?? true));
  }

  noteIssued(token: bigint): void {
    if (this.#result?.kind === 'open') this.#result.stamp?.noteIssued(token);
  }

  /** A start under way is waited for, if it does not hang: a directory that it made and may not publish is removed by it, or by nobody. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#retries.cancel();
    const result = this.#result;
    this.#become(new ClosedVolume(this.policy, 'closed', STOPPED), null);
    if (this.#starting !== null) await within(this.#options.clock, LIMITS.volumeStartEndMsMax, Promise.allSettled([this.#starting]));
    if (result?.kind === 'open') await result.close();
  }

  state(): { readonly state: VolumeState; readonly reason: string | null } {
    const { state, reason } = this.#current.state();
    const doubt = state === 'unavailable' || state === 'closed' ? null : this.#options.doubt();
    if (doubt !== null) return { state: 'unavailable', reason: doubt };
    if (this.#mustRebase !== null) return { state: 'read_only', reason: this.#mustRebase };
    return { state, reason: reason ?? (this.#result?.kind === 'open' ? this.#notice : null) };
  }

  assertWritable(): void {
    if (this.#mustRebase !== null)
      throw new GatewayError('volume_unavailable', {
        detail: `The volume ${this.name} takes no writes: ${this.#mustRebase}`,
        retryAfterMs: LIMITS.volumeRetryMsMax,
      });
    this.#current.assertWritable();
  }

  space(): VolumeSpace | null {
    return this.#current.space();
  }
  locate(resource: Resource): Promise<Place> {
    return this.#current.locate(resource);
  }
  look(place: Place): Promise<TargetFacts | null> {
    return this.#current.look(place);
  }
  makeParents(place: Place): Promise<Place> {
    return this.#writing((volume) => volume.makeParents(place));
  }
  stage(options: Parameters<Volume['stage']>[0]): Promise<Staging> {
    return this.#writing((volume) => volume.stage(options));
  }
  stageCopy(...args: Parameters<Volume['stageCopy']>): Promise<Staging> {
    return this.#writing((volume) => volume.stageCopy(...args));
  }
  apply(intent: Intent, place: Place, from: Place | null): Promise<void> {
    return this.#writing((volume) => volume.apply(intent, place, from));
  }
  restore(intents: readonly Intent[]): Promise<boolean> {
    return this.#writing((volume) => volume.restore(intents));
  }
  syncParent(place: Place): Promise<void> {
    return this.#current.syncParent(place);
  }
  writeRedo(intent: Intent): Promise<void> {
    return this.#writing((volume) => volume.writeRedo(intent));
  }
  writeManifest(...args: Parameters<Volume['writeManifest']>): Promise<void> {
    return this.#writing((volume) => volume.writeManifest(...args));
  }
  tidy(intents: readonly Intent[]): void {
    this.#current.tidy(intents);
  }
  settle(intent: Intent): Promise<Settled> {
    return this.#writing((volume) => volume.settle(intent));
  }
  limitVisible(resource: Resource, visibleBytes: number | null): void {
    this.#current.limitVisible(resource, visibleBytes);
  }
  open(resource: Resource): Promise<OpenedFile> {
    return this.#current.open(resource);
  }
  list(...args: Parameters<Volume['list']>): ReturnType<Volume['list']> {
    return this.#current.list(...args);
  }

  async #writing<T>(work: (volume: Volume) => Promise<T>): Promise<T> {
    if (this.#mustRebase !== null) this.assertWritable();
    return work(this.#current);
  }

  async #again(mode: StartMode, going = { reads: false }): Promise<VolumeStartResult> {
    this.#retries.cancel();
    // Once stopped, none begins. A start that is over then stays here until what it opened is closed: to wait for that in a loop would let no call end.
    while (this.#starting !== null && !this.#stopped) await this.#starting;
    return this.#attempt(mode, going);
  }

  async #attempt(mode: StartMode, going = { reads: false }): Promise<VolumeStartResult> {
    if (this.#stopped) return { kind: 'closed', reason: STOPPED, ownedByAnother: false, findings: [] };
    const before = this.#result;
    if (!going.reads || before?.kind !== 'open') this.#become(new ClosedVolume(this.policy, 'unavailable', 'It is being started.'), null);
    if (before?.kind === 'open') before.stamp?.abandon();
    this.#starting = this.#options.start(mode);
    try {
      const result = await this.#starting;
      if (this.#stopped) {
        if (result.kind === 'open') await result.close();
        return result;
      }
      this.#take(result);
      return result;
    } finally {
      this.#starting = null;
      // Calls that began on what served before may still hold its descriptors; they end within their deadlines.
      if (before?.kind === 'open') this.#options.clock.after(commitDeadlineMs(LIMITS.multipartFilesMax), () => void before.close());
    }
  }

  #take(result: VolumeStartResult): void {
    if (result.kind === 'open') {
      this.#retries.soon();
      const refused = result.findings.find(asksForRebase);
      this.#mustRebase = refused?.evidence ?? null;
      this.#notice = this.#options.notice?.() ?? null;
      this.#become(result.volume, result);
      return;
    }
    this.#mustRebase = null;
    if (result.kind === 'lock_only') this.#become(lockOnly(this.policy), result);
    else if (result.kind === 'closed') this.#become(new ClosedVolume(this.policy, result.kind, result.reason), result);
    else {
      // Its owner may go at any moment, and somebody stands by for that.
      if (result.ownedByAnother) this.#retries.soon();
      this.#later(result.reason, result);
    }
  }

  #later(reason: string, result = this.#result): void {
    if (this.#stopped || this.#retries.waits) return;
    this.#become(new ClosedVolume(this.policy, 'unavailable', reason), result);
    this.#retries.later();
  }

  #become(volume: Volume, result: VolumeStartResult | null): void {
    this.#current = volume;
    this.#result = result;
    this.#options.onChange(this);
  }
}

import { holdMsOf } from './acquiring.ts';
import { CLIENT_LIMITS } from './client-limits.ts';
import type { Lease, LeaseMode } from './contract/answers.ts';
import { STATUS_BY_CODE } from './contract/codes.ts';
import { FencegateError } from './errors.ts';
import type { HeldLeaseState } from './held-lease.ts';
import { HeldLease } from './held-lease.ts';
import type { LeaseStanding } from './lease-standing.ts';
import type { Transport } from './transport.ts';

export interface InheritedFacts {
  readonly resource: string;
  readonly leaseId: string;
  /** What writes send: on a volume with signed tokens the signed one, which begins with the number. */
  readonly fencingToken: string;
}

/**
 * The lease of the `fencegate exec` around this process, which renews and releases it. Here it is only looked at: its end is known
 * after the first look, and looked for again while it is in use. Until then the gateway alone judges its writes.
 */
export class InheritedLease implements LeaseStanding {
  readonly resources: readonly string[];
  readonly leaseId: string;
  readonly leaseRef = null;
  readonly #transport: Transport;
  readonly #token: string;
  readonly #writeToken: string;
  readonly #unknown = new AbortController();
  #lease: HeldLease | null = null;

  constructor(transport: Transport, { resource, leaseId, fencingToken }: InheritedFacts) {
    this.#transport = transport;
    this.resources = [resource];
    this.leaseId = leaseId;
    this.#token = fencingToken.split('.')[0] ?? '';
    this.#writeToken = fencingToken;
  }

  get token(): string {
    return this.#token;
  }

  get writeToken(): string {
    return this.#lease?.writeToken ?? this.#writeToken;
  }

  get mode(): LeaseMode {
    return this.#lease?.mode ?? 'exclusive';
  }

  get state(): HeldLeaseState {
    return this.#lease?.state ?? 'held';
  }

  get loss(): FencegateError | null {
    return this.#lease?.loss ?? null;
  }

  get remainingMs(): number {
    return this.#lease?.remainingMs ?? 0;
  }

  get keptForMs(): number {
    return this.#lease?.keptForMs ?? 0;
  }

  get signal(): AbortSignal {
    return this.#lease?.signal ?? this.#unknown.signal;
  }

  covers(resource: string): boolean {
    return this.resources.includes(resource);
  }

  assertHeld(): void {
    this.#lease?.assertHeld();
  }

  refused(reason: string): void {
    this.#lease?.lose(reason, 'gateway');
  }

  /** Nothing: it is not ours to end. */
  async release(): Promise<void> {}

  convert(mode: LeaseMode): Promise<void> {
    if (mode === this.mode) return Promise.resolve();
    return Promise.reject(
      new FencegateError('overlapping_lease', {
        detail: 'The lease of fencegate exec is converted by nobody; run it with or without --shared.',
        status: STATUS_BY_CODE.overlapping_lease,
      }),
    );
  }

  /** Learns how long the lease still lives. Throws `lease_lost` when it has ended, `lease_not_found`, `gateway_unreachable`. */
  async look(signal?: AbortSignal): Promise<void> {
    const { clock } = this.#transport;
    const sentMs = clock.monotonicMs();
    const path = `/v1/leases/${encodeURIComponent(this.leaseId)}`;
    const answer = await this.#transport.repeated<Lease>({ method: 'GET', path, signal }, { keyed: true });
    if (this.#lease === null) {
      this.#lease = new HeldLease({
        clock,
        lease: answer,
        untilMs: sentMs + answer.expires_in_ms,
        askedMs: sentMs,
        holdMs: holdMsOf(answer),
        marginMs: null,
      });
      this.#lookAgain(this.#lease);
    } else this.#lease.renewed(sentMs, answer.expires_in_ms);
    if (answer.state !== 'held' || answer.fencing_token !== this.#token) this.#lease.lose(answer.reason ?? answer.state, 'gateway');
    this.#lease.assertHeld();
  }

  #lookAgain(lease: HeldLease): void {
    const everyMs = Math.min(CLIENT_LIMITS.inheritedLookMsMax, lease.livesForMs / CLIENT_LIMITS.heartbeatsPerTtl);
    this.#transport.clock.after(everyMs, () => {
      if (this.state !== 'held' || this.#transport.closing.aborted) return;
      // A look that fails is made again; the lease's own end is judged by the clock meanwhile.
      this.look().then(
        () => this.#lookAgain(lease),
        () => this.#lookAgain(lease),
      );
    });
  }
}

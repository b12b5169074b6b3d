import { CLIENT_LIMITS } from './client-limits.ts';
import type { Lease, LeaseMode } from './contract/answers.ts';
import { STATUS_BY_CODE } from './contract/codes.ts';
import { FencegateError, isFencegateError } from './errors.ts';
import type { HeldLease } from './held-lease.ts';
import { JoinedSignal } from './joined-signal.ts';
import type { ConvertOptions } from './lease-standing.ts';
import type { LocalLine, Place } from './local-line.ts';
import type { Transport } from './transport.ts';

/** Readers that become writers, and back (R21): first among the tasks of this process, then at the gateway. */
export class Converting {
  readonly #transport: Transport;
  readonly #line: LocalLine;

  constructor(transport: Transport, line: LocalLine) {
    this.#transport = transport;
    this.#line = line;
  }

  async convert(lease: HeldLease, place: Place | null, mode: LeaseMode, options: ConvertOptions): Promise<void> {
    if (mode === lease.mode) return;
    if (mode === 'shared') {
      await this.#toShared(lease, options.signal);
      if (place !== null) this.#line.downgrade(place);
      return;
    }
    const { clock } = this.#transport;
    const untilMs = options.waitMs === undefined ? null : clock.monotonicMs() + options.waitMs;
    if (place !== null) await this.#line.upgrade(place, { waitMs: options.waitMs, signal: options.signal });
    try {
      await this.#toExclusive(lease, untilMs, options.signal);
    } catch (thrown) {
      if (place !== null) this.#line.downgrade(place);
      throw thrown;
    }
  }

  async #toShared(lease: HeldLease, signal: AbortSignal | undefined): Promise<void> {
    lease.converted(await this.#post(lease, 'shared', signal));
  }

  async #toExclusive(lease: HeldLease, untilMs: number | null, signal: AbortSignal | undefined): Promise<void> {
    const { clock } = this.#transport;
    const joined = new JoinedSignal(clock, [signal, lease.signal], null);
    const path = `/v1/leases/${encodeURIComponent(lease.leaseId)}`;
    try {
      let answer = await this.#post(lease, 'exclusive', joined.signal);
      while (answer.mode !== 'exclusive') {
        // No place in the line any more: another upgrade won, or this one was the victim of a deadlock.
        if (answer.state !== 'held') throw ended(answer);
        if (answer.queue_position === null) {
          if (answer.reason !== 'upgrade_lost') throw notConverted(answer.reason);
          // The gateway was started again: that ended the wait, not the lease.
          answer = await this.#post(lease, 'exclusive', joined.signal);
          continue;
        }
        const restMs = untilMs === null ? CLIENT_LIMITS.pollWaitMs : Math.min(CLIENT_LIMITS.pollWaitMs, untilMs - clock.monotonicMs());
        if (restMs <= 0) throw notConverted(null);
        const waitMs = Math.ceil(restMs);
        answer = await this.#transport.repeated<Lease>(
          { method: 'GET', path, query: { wait_ms: waitMs }, waitMs, signal: joined.signal },
          { keyed: true },
        );
      }
      lease.converted(answer);
    } catch (thrown) {
      await this.#giveUp(lease, thrown);
      throw thrown;
    } finally {
      joined.dispose();
    }
  }

  /** The upgrade may still be under way, or have been granted: it is taken back, and what the lease is now is asked for. Keeps the first error. */
  async #giveUp(lease: HeldLease, thrown: unknown): Promise<void> {
    if (lease.state !== 'held' || isFencegateError(thrown, 'upgrade_conflict', 'deadlock', 'lease_not_held')) return;
    try {
      await this.#toShared(lease, undefined);
    } catch {
      // Then nobody can say which mode it has, and it must not be written under.
      lease.lose('conversion_unknown', 'clock');
    }
  }

  #post(lease: HeldLease, mode: LeaseMode, signal: AbortSignal | undefined): Promise<Lease> {
    const path = `/v1/leases/${encodeURIComponent(lease.leaseId)}/convert`;
    return this.#transport.repeated<Lease>({ method: 'POST', path, json: { mode }, signal }, { keyed: true });
  }
}

function ended(answer: Lease): FencegateError {
  return new FencegateError('lease_not_held', {
    detail: 'The lease ended while it was converted.',
    status: STATUS_BY_CODE.lease_not_held,
    members: { reason: answer.reason },
  });
}

function notConverted(reason: string | null): FencegateError {
  const code = reason === 'deadlock' || reason === 'upgrade_conflict' ? reason : 'lock_not_acquired';
  return new FencegateError(code, { detail: 'The lease did not become exclusive.', status: STATUS_BY_CODE[code], members: { reason } });
}

import { randomUUID } from 'node:crypto';
import { Acquiring } from './acquiring.ts';
import type { ClientEventListener } from './client-events.ts';
import { Converting } from './converting.ts';
import { FencegateError } from './errors.ts';
import type { FileWrites } from './file-writes.ts';
import type { InheritedLease } from './inherited-lease.ts';
import { LeaseContext } from './lease-context.ts';
import { LeaseHandle } from './lease-handle.ts';
import type { LeaseOptions } from './lease-options.ts';
import { LocalLine, type Place } from './local-line.ts';
import { OwnStanding } from './own-standing.ts';
import type { SessionKeeper } from './session-keeper.ts';
import type { Transport } from './transport.ts';
import type { WriteRight } from './write-right.ts';

export interface LeaseDeskParts {
  readonly transport: Transport;
  readonly keeper: SessionKeeper;
  readonly writes: FileWrites;
  readonly inherited: InheritedLease | null;
  readonly onEvent: ClientEventListener;
}

const PRIORITY_DEFAULT = 5;

/** Where a lease comes from: the code that asks already has it, the surrounding `fencegate exec` has it, or the gateway is asked. */
export class LeaseDesk {
  readonly context = new LeaseContext();
  readonly #parts: LeaseDeskParts;
  readonly #line: LocalLine;
  readonly #acquiring: Acquiring;
  readonly #converting: Converting;
  /** What stands behind a handle of this client, for another hold on the same lease. */
  readonly #standings = new WeakMap<LeaseHandle, OwnStanding>();

  constructor(parts: LeaseDeskParts) {
    this.#parts = parts;
    this.#line = new LocalLine(parts.transport.clock);
    this.#acquiring = new Acquiring(parts.transport, parts.keeper);
    this.#converting = new Converting(parts.transport, this.#line);
  }

  async lease(resources: readonly string[], options: LeaseOptions): Promise<LeaseHandle> {
    options.signal?.throwIfAborted();
    const outer = this.context.covering(resources);
    if (outer !== null) return this.#nested(outer, options);
    const { inherited } = this.#parts;
    if (inherited !== null && resources.every((resource) => inherited.covers(resource))) {
      await inherited.look();
      return this.#handle(inherited);
    }
    const { clock } = this.#parts.transport;
    const untilMs = options.waitMs === undefined ? null : clock.monotonicMs() + options.waitMs;
    const place = await this.#line.enter(resources, options.mode ?? 'exclusive', {
      priority: options.priority ?? PRIORITY_DEFAULT,
      waitMs: options.waitMs,
      signal: options.signal,
    });
    return this.#hold(resources, options, untilMs, place);
  }

  /** The lease that a write of the running code to `resource` goes under, when it names none; one that is over, too, so that the write is refused. */
  rightFor(resource: string): WriteRight | null {
    const outer = this.context.over(resource);
    if (outer !== null) return outer.right;
    const { inherited } = this.#parts;
    return inherited?.covers(resource) === true ? inherited : null;
  }

  /** A hold more on the lease that the running code has: the same token (R4). */
  #nested(outer: LeaseHandle, options: LeaseOptions): Promise<LeaseHandle> {
    if (outer.mode === 'shared' && options.mode !== 'shared') {
      throw new FencegateError('overlapping_lease', { detail: 'The running code holds this resource shared: convert that lease.' });
    }
    const standing = this.#standings.get(outer);
    if (standing === undefined) return Promise.resolve(outer);
    return this.#hold(outer.resources, { ...options, mode: outer.mode }, null, null);
  }

  async #hold(resources: readonly string[], options: LeaseOptions, untilMs: number | null, place: Place | null): Promise<LeaseHandle> {
    const { transport, keeper, onEvent } = this.#parts;
    const holdId = randomUUID();
    const leavePlace = (): void => {
      if (place !== null) this.#line.leave(place);
    };
    try {
      const lease = await this.#acquiring.acquire({ resources, options, holdId, untilMs });
      return this.#handle(new OwnStanding({ lease, holdId, place, leavePlace, transport, keeper, converting: this.#converting, onEvent }));
    } catch (thrown) {
      leavePlace();
      throw thrown;
    }
  }

  #handle(standing: OwnStanding | InheritedLease): LeaseHandle {
    const handle = new LeaseHandle(standing, this.#parts.writes, this.context);
    if (standing instanceof OwnStanding) this.#standings.set(handle, standing);
    return handle;
  }
}

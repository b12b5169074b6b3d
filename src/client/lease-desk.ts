import { randomUUID } from 'node:crypto';
import { Acquiring } from './acquiring.ts';
import type { ClientEventListener } from './client-events.ts';
import type { LeaseMode } from './contract/answers.ts';
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
    const inherited = await this.#inheritedFor(resources, options);
    if (inherited !== null) return inherited;
    if (this.context.touching(resources) !== null) throw overlapping('The running code holds a part of these resources, and would wait for itself');
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

  /** The lease of the surrounding `fencegate exec`, when it is over the same resource. */
  async #inheritedFor(resources: readonly string[], options: LeaseOptions): Promise<LeaseHandle | null> {
    const { inherited } = this.#parts;
    if (inherited === null || !resources.some((resource) => inherited.covers(resource))) return null;
    // Only the gateway knows in which mode it is held, and whether it still is.
    await inherited.look();
    if (!resources.every((resource) => inherited.covers(resource))) {
      throw overlapping(
        `fencegate exec around this process holds a part of these resources (${inherited.resources.join(', ')}), and would be waited for`,
      );
    }
    assertStrongEnough(inherited.mode, options, 'fencegate exec around this process holds');
    return this.#handle(inherited);
  }

  /** A hold more on the lease that the running code has: the same token (R4). */
  #nested(outer: LeaseHandle, options: LeaseOptions): Promise<LeaseHandle> {
    assertStrongEnough(outer.mode, options, 'The running code holds');
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

/** Whoever asks for the only hold must not be given one of several: what it then read could change under it. */
function assertStrongEnough(held: LeaseMode, { mode }: LeaseOptions, who: string): void {
  if (held === 'shared' && mode !== 'shared') throw overlapping(`${who} this resource shared, which is not enough for an exclusive lease`);
}

function overlapping(detail: string): FencegateError {
  return new FencegateError('overlapping_lease', { detail: `${detail}.` });
}

import type { Clock, Timer } from '../domain/clock.ts';
import { type CycleMember, cycleMembers, type DeadlockStep } from '../domain/deadlock.ts';
import { LIMITS } from '../domain/limits.ts';
import type { LockEvent, LockReset } from '../domain/lock-events.ts';
import { lockJson, tokenText } from './views.ts';

/**
 * Lock events as server-sent events. Pull-driven: a slow client slows only its own iteration, and whoever feeds it bounds
 * what waits. A comment goes out while nothing happens, so that proxies do not cut the stream (case R19).
 */
export async function* eventStream(
  events: AsyncIterable<LockEvent | LockReset>,
  visible: (name: string) => boolean,
  clock: Clock,
): AsyncGenerator<string> {
  const source = events[Symbol.asyncIterator]();
  try {
    // Sends the head of the answer, so that the client knows it is watching.
    yield ': watching\n\n';
    let next = source.next();
    for (;;) {
      const result = await Promise.race([next, quiet(clock, next)]);
      if (result === 'quiet') {
        yield ': still watching\n\n';
        continue;
      }
      if (result.done === true) return;
      const text = eventText(result.value, visible);
      if (text !== null) yield text;
      next = source.next();
    }
  } finally {
    await source.return?.();
  }
}

function quiet(clock: Clock, until: Promise<unknown>): Promise<'quiet'> {
  return new Promise((resolve) => {
    const timer: Timer = clock.after(LIMITS.watchCommentMs, () => resolve('quiet'));
    const stop = (): void => timer.cancel();
    until.then(stop, stop);
  });
}

/** `null` for what lies outside the caller's scope. */
function eventText(event: LockEvent | LockReset, visible: (name: string) => boolean): string | null {
  if (event.type === 'reset') {
    const locks = event.locks.filter(({ resource }) => visible(resource.name)).map(lockJson);
    return frame('reset', event.seq, { seq: event.seq, at: event.at, locks });
  }
  if (event.resource !== null && !visible(event.resource)) return null;
  return frame(event.type, event.seq, {
    seq: event.seq,
    at: event.at,
    resource: event.resource,
    lease_ref: event.leaseRef,
    client_id: event.clientId,
    mode: event.mode,
    fencing_token: tokenText(event.fencingToken),
    reason: event.reason,
    cycle: event.cycle === null ? null : seenCycle(event.cycle, visible),
  });
}

/** A cycle goes through whatever its members hold: of what lies outside the caller's scope the name is left out. */
function seenCycle(cycle: readonly DeadlockStep[], visible: (name: string) => boolean): readonly CycleMember[] {
  return cycleMembers(cycle).map((member) => (member.waits_for === null || visible(member.waits_for) ? member : { ...member, waits_for: null }));
}

/** JSON has no line breaks of its own, so one `data` line is enough. */
function frame(type: string, seq: number, data: object): string {
  return `id: ${seq}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
}

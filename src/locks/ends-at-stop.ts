import type { Clock } from '../domain/clock.ts';
import { LIMITS } from '../domain/limits.ts';
import { within } from '../domain/within.ts';
import type { EndsTold } from './ends-told.ts';
import type { LeaseTable } from './lease-table.ts';
import type { SessionDesk } from './session-desk.ts';

/** What was ended here, while the journal shows it as live: a start may bring it back. By their refs. */
export interface EndsNotStored {
  readonly leases: readonly string[];
  readonly sessions: readonly string[];
}

export interface EndsAtStopDeps {
  readonly clock: Clock;
  readonly table: LeaseTable;
  readonly ends: EndsTold;
  readonly sessionDesk: SessionDesk;
}

/** Ends that the journal refused are tried once more before the process ends, for a moment; of what it still does not have somebody must be told. */
export async function endsAtStop({ clock, table, ends, sessionDesk }: EndsAtStopDeps): Promise<EndsNotStored> {
  const tried = ends.lastTry().then(() => sessionDesk.lastTry());
  await within(clock, LIMITS.endsAtStopMs, tried).catch(() => undefined);
  // A wait is in no journal.
  const leases = [...table.untold()].flatMap(({ told, leaseRef }) => (told === null ? [] : leaseRef));
  // A commit section that did not leave: its end never took effect.
  for (const { decided, leaseRef } of table.live()) if (decided !== null) leases.push(leaseRef);
  return { leases, sessions: sessionDesk.untoldRefs() };
}

import type { DeadlockStep } from './coordinator.ts';

/** A cycle of waits as every answer shows it: who waits, and for what. */
export function cycleMembers(cycle: readonly DeadlockStep[]): readonly object[] {
  return cycle.map(({ waiterLeaseRef, waiterClientId, resource }) => ({ lease_ref: waiterLeaseRef, client_id: waiterClientId, waits_for: resource }));
}

/** One wait in a cycle of waits. */
export interface DeadlockStep {
  readonly waiterLeaseRef: string;
  readonly waiterClientId: string | null;
  readonly resource: string;
}

export interface CycleMember {
  readonly lease_ref: string;
  readonly client_id: string | null;
  readonly waits_for: string | null;
}

/** A cycle of waits in the one form in which answers, leases, events and records show it: who waits, and for what. */
export function cycleMembers(cycle: readonly DeadlockStep[]): CycleMember[] {
  return cycle.map(({ waiterLeaseRef, waiterClientId, resource }) => ({ lease_ref: waiterLeaseRef, client_id: waiterClientId, waits_for: resource }));
}

import type { Clock } from '../../domain/clock.ts';
import type { Coordination } from '../coordination.ts';
import type { Lease } from '../lease-record.ts';
import { EmbeddedCoordinator } from './embedded-coordinator.ts';
import { Mint } from './mint.ts';

/** The coordinator of a single gateway: always in contact with itself. */
export function embeddedCoordination(clock: Clock, queueMax: (volume: string) => number): Coordination {
  const mint = new Mint(0n);
  const coordinator = new EmbeddedCoordinator<Lease>({ clock, mint, queueMax });
  return {
    coordinator,
    seating: coordinator,
    coordinatorId: () => null,
    readiness: () => ({ kind: 'embedded', state: 'connected', sessionMs: null, proofAgeMs: null, reason: null }),
    refusal: () => null,
    remainderMs: () => Number.POSITIVE_INFINITY,
    onState: () => undefined,
    raiseAbove: (token) => mint.raiseTo(token),
    rebase: async (base) => mint.raiseTo(base),
    nodes: async () => [],
    removeOrphan: async () => false,
  };
}

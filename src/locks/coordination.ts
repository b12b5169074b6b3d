import type { CoordinatorNode } from '../domain/administration.ts';
import type { GatewayError } from '../domain/errors.ts';
import type { CoordinatorReadiness } from '../domain/health.ts';
import type { Coordinator, SeatingCoordinator } from './coordinator.ts';
import type { Lease } from './lease-record.ts';

/** A coordinator, and what the lock service needs to know of the contact with it. */
export interface Coordination {
  readonly coordinator: Coordinator<Lease>;
  /** The same one when its holders outlive a restart of the gateway. */
  readonly seating: SeatingCoordinator<Lease> | null;
  /** Which source of tokens; `null` when it is the gateway itself, or not known yet. */
  coordinatorId(): string | null;
  /** Judged at this moment. */
  readiness(): CoordinatorReadiness;
  /** `null`: somebody may be let in, and a write may begin. Otherwise `coordinator_suspended` or `coordinator_unavailable`. */
  refusal(): GatewayError | null;
  /** How long from now what is held is certainly still held, ms; infinite when nothing but its own time can end it. */
  remainderMs(): number;
  /** Changes of `readiness().state`. After `lost` has returned, every lease must have been told to end. */
  onState(listener: (state: CoordinatorReadiness['state']) => void): void;
  /** Tokens go on above this one (I6). */
  raiseAbove(token: bigint): void;
  /** `fence rebase`: the same, durably, for whoever uses this coordinator. Rejects with `coordinator_suspended`, `coordinator_unavailable`. */
  rebase(base: bigint): Promise<void>;
  /** What is wrong in the coordinator with what is held and waited for; nothing while there is no contact. */
  nodes(): Promise<readonly CoordinatorNode[]>;
  /** False when there was nothing to remove any more. Rejects with `coordinator_suspended`, `coordinator_unavailable`. */
  removeOrphan(node: CoordinatorNode): Promise<boolean>;
}

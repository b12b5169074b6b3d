import type { CoordinatorNode } from '../domain/administration.ts';
import type { CoordinatorReadiness } from '../domain/health.ts';
import { LIMITS } from '../domain/limits.ts';
import { type Diagnosis, diagnosis, type Remedy } from './diagnosis.ts';
import type { DoctorDeps } from './doctor-deps.ts';

/** The contact with the coordinator, and whether its tokens are above those of before. */
export function coordinatorState({ kind, state, sessionMs, proofAgeMs, reason }: CoordinatorReadiness): Diagnosis[] {
  const found: Diagnosis[] = [];
  const evidence = { kind, state, session_ms: sessionMs, proof_age_ms: proofAgeMs === null ? null : Math.round(proofAgeMs) };
  if (state === 'suspended' || state === 'lost') {
    const how =
      state === 'suspended'
        ? 'Nothing is granted, and protected writes wait. If the session is proven again before two thirds of its time, all goes on; else every lease is lost. Look at the servers and the way to them.'
        : 'Every lease of the session that was lost is void. A new session is begun as soon as the servers answer.';
    const lost = state === 'lost';
    found.push(
      diagnosis({
        code: lost ? 'coordinator_lost' : 'coordinator_suspended',
        severity: lost ? 'error' : 'warning',
        resource: null,
        evidence: { ...evidence, how },
      }),
    );
  }
  if (reason !== null) {
    const how = 'POST /v1/admin/fences/rebase {"reason":"..."} voids every token so far and goes on above them.';
    found.push(diagnosis({ code: 'coordinator_behind', severity: 'error', resource: null, evidence: { ...evidence, what: reason, how } }));
  }
  return found;
}

const ORPHANED = 'node_orphaned';

/**
 * Whether only contact is missing to tell if such a finding stands. With a session that is lost its nodes go, too, so then there is none.
 */
export function isOutOfSight(findingId: string, { state }: Pick<CoordinatorReadiness, 'state'>): boolean {
  return state === 'suspended' && findingId.startsWith(`${ORPHANED}.`);
}

/** Nodes of ours in the coordinator that nobody stands behind, and counters that come near their end. */
export async function coordinatorNodes({ nodes, removeOrphan }: Pick<DoctorDeps, 'nodes' | 'removeOrphan'>): Promise<Diagnosis[]> {
  const found = (await nodes()).slice(0, LIMITS.doctorFindingsMax);
  return found.map((node) => (node.kind === 'orphan' ? orphan(node, removeOrphan) : counterHigh(node)));
}

function orphan(found: CoordinatorNode, removeOrphan: DoctorDeps['removeOrphan']): Diagnosis {
  const { resource, node } = found;
  const remedy: Remedy = {
    fix: 'Delete the node.',
    steps: [`delete ${node} if it still belongs to this gateway's session and no lease stands behind it`, 'whoever waits behind it moves on'],
    subject: { volume: resource.volume, path: resource.path },
    leaseRef: null,
    carryOut: async () => [(await removeOrphan(found)) ? `deleted ${node}` : `left ${node} alone: it is gone, or a lease stands behind it`],
  };
  return diagnosis({ code: ORPHANED, severity: 'error', resource: resource.name, subject: node, evidence: { node }, remedy });
}

function counterHigh({ resource, node, changes }: CoordinatorNode): Diagnosis {
  const how = 'The node is made anew by itself when it is idle for a moment; under load that never is, let the lock go for a moment.';
  return diagnosis({ code: 'sequence_counter_high', severity: 'warning', resource: resource.name, subject: node, evidence: { node, changes, how } });
}

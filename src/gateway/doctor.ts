import type { DoctorReport, Finding, FindingSeverity, WaitForEdge } from '../domain/administration.ts';
import { type Clock, rfc3339 } from '../domain/clock.ts';
import type { CoordinatorReadiness } from '../domain/health.ts';
import { LIMITS } from '../domain/limits.ts';
import type { LockService, LockView } from '../domain/lock-api.ts';
import type { VolumeFinding } from '../domain/recovery.ts';
import type { Volumes } from '../domain/volume.ts';
import { readinessOf } from './health.ts';
import type { SettleLoop } from './settle-loop.ts';

export interface DoctorDeps {
  readonly clock: Clock;
  readonly volumes: Volumes;
  readonly volumeFindings: () => readonly VolumeFinding[];
  readonly settleLoop: Pick<SettleLoop, 'open'>;
  readonly locks: Pick<LockService, 'locks' | 'sessions'>;
  readonly held: () => Iterable<{ readonly leaseRef: string; readonly resources: readonly { readonly name: string }[]; readonly heldMs: number }>;
  readonly waitFor: () => readonly WaitForEdge[];
  readonly coordinator: () => CoordinatorReadiness;
}

/** One snapshot of everything that can be stuck, and what is wrong with it, each with its evidence (R22). */
export async function examine(deps: DoctorDeps): Promise<DoctorReport> {
  const { locks } = await deps.locks.locks({ limit: LIMITS.doctorLocksMax, cursor: null });
  const findings = [...volumeFindings(deps), ...unknownOutcomes(deps), ...heldLong(deps), ...longQueues(locks)];
  return {
    at: rfc3339(deps.clock.wallMs()),
    healthy: findings.every(({ severity }) => severity === 'info'),
    findings,
    sessions: deps.locks.sessions(),
    locks,
    waitFor: deps.waitFor(),
    coordinator: deps.coordinator(),
    volumes: deps.volumes.all().map((volume) => readinessOf(volume)),
  };
}

function volumeFindings(deps: DoctorDeps): Finding[] {
  return deps
    .volumeFindings()
    .map(({ code, severity, volume, resource, evidence }) =>
      finding(code, severity === 'error' ? 'critical' : severity, resource ?? volume, { volume, what: evidence }),
    );
}

function unknownOutcomes(deps: DoctorDeps): Finding[] {
  return deps.settleLoop
    .open()
    .map(({ operationId, resource, volume }) => finding('outcome_unknown', 'critical', resource, { operation_id: operationId, volume }));
}

function heldLong(deps: DoctorDeps): Finding[] {
  const found: Finding[] = [];
  for (const { leaseRef, resources, heldMs } of deps.held()) {
    if (heldMs < LIMITS.heldLongMs) continue;
    found.push(finding('held_long', 'warning', resources[0]?.name ?? null, { lease_ref: leaseRef, held_ms: heldMs }));
  }
  return found;
}

function longQueues(locks: readonly LockView[]): Finding[] {
  return locks
    .filter(({ queueLength }) => queueLength > LIMITS.queueLong)
    .map(({ resource, queueLength }) => finding('queue_long', 'warning', resource.name, { queue_length: queueLength }));
}

function finding(code: string, severity: FindingSeverity, resource: string | null, evidence: Record<string, unknown>): Finding {
  return {
    id: `${code}:${resource ?? ''}:${String(evidence['lease_ref'] ?? evidence['operation_id'] ?? '')}`,
    code,
    severity,
    resource,
    evidence,
    fix: null,
  };
}

import type { LeaseCondition, WaitForEdge } from '../domain/administration.ts';
import { cycleMembers } from '../domain/deadlock.ts';
import { LIMITS } from '../domain/limits.ts';
import type { LockView } from '../domain/lock-api.ts';
import type { Resource } from '../domain/resource.ts';
import { findCycle } from '../locks/wait-for-graph.ts';
import { type Diagnosis, diagnosis, findingId, nameOf, type Remedy } from './diagnosis.ts';
import type { DoctorDeps } from './doctor-deps.ts';

type EndLease = DoctorDeps['endLease'];

/**
 * A lease held for longer than five minutes. A holder that is proven gone is ended by the fix; about one that may be alive an administrator
 * decides, with a reason: by force, or through the call that the evidence names.
 */
export function heldLong(conditions: readonly LeaseCondition[], endLease: EndLease): Diagnosis[] {
  return conditions
    .filter(({ state, ageMs }) => state !== 'waiting' && ageMs >= LIMITS.heldLongMs)
    .sort((a, b) => b.ageMs - a.ageMs)
    .slice(0, LIMITS.doctorFindingsMax)
    .map((condition) => {
      const { leaseRef, resources, state, gone } = condition;
      const about = { code: 'held_long', resource: nameOf(resources[0]), subject: leaseRef };
      const needsForce = state === 'held' && gone === null;
      const how = howToBreak(condition, findingId(about));
      return diagnosis({
        ...about,
        severity: 'warning',
        evidence: { ...evidenceOf(condition), held_ms: Math.round(condition.ageMs), needs_force: needsForce, how },
        remedy: state === 'held' && gone !== null ? endRemedy(condition, endLease, null) : null,
        forced: needsForce ? (reason) => endRemedy(condition, endLease, reason) : null,
      });
    });
}

/** In line, or a holder of less than five minutes, although its client is gone: a correct lock service never leaves one. */
export function leftBehind(conditions: readonly LeaseCondition[], endLease: EndLease): Diagnosis[] {
  return conditions
    .filter(({ state, ageMs, gone }) => gone !== null && (state === 'waiting' || (state === 'held' && ageMs < LIMITS.heldLongMs)))
    .slice(0, LIMITS.doctorFindingsMax)
    .map((condition) =>
      diagnosis({
        code: condition.state === 'waiting' ? 'contender_orphaned' : 'holder_gone',
        severity: 'error',
        resource: nameOf(condition.resources[0]),
        subject: condition.leaseRef,
        evidence: evidenceOf(condition),
        remedy: endRemedy(condition, endLease, null),
      }),
    );
}

export function longQueues(locks: readonly LockView[]): Diagnosis[] {
  return locks
    .filter(({ queueLength }) => queueLength > LIMITS.queueLong)
    .slice(0, LIMITS.doctorFindingsMax)
    .map(({ resource, queueLength, holders, waiters, waitEstimateMs }) =>
      diagnosis({
        code: 'queue_long',
        severity: 'warning',
        resource: resource.name,
        evidence: {
          queue_length: queueLength,
          wait_estimate_ms: waitEstimateMs,
          waiting_since: waiters[0]?.since ?? null,
          holders: holders
            .slice(0, LIMITS.doctorFindingsMax)
            .map(({ leaseRef, clientId, since }) => ({ lease_ref: leaseRef, client_id: clientId, since })),
        },
      }),
    );
}

/** A cycle of waits that stands: the lock service breaks those it finds within a moment, so one that is still there needs eyes. */
export function deadlocks(edges: readonly WaitForEdge[], conditions: readonly LeaseCondition[]): Diagnosis[] {
  const byRef = new Map(conditions.map((condition) => [condition.leaseRef, condition]));
  const partyOf = (leaseRef: string): string => byRef.get(leaseRef)?.sessionRef ?? leaseRef;
  const waits = new Map<string, { readonly to: string; readonly wait: WaitForEdge }[]>();
  for (const edge of edges) {
    const from = partyOf(edge.waiterLeaseRef);
    const list = waits.get(from) ?? [];
    waits.set(from, list);
    list.push({ to: partyOf(edge.holderLeaseRef), wait: edge });
  }
  const seen = new Set<string>();
  const found: Diagnosis[] = [];
  for (const start of waits.keys()) {
    if (seen.has(start)) continue;
    const cycle = findCycle(start, (party) => waits.get(party) ?? [], LIMITS.deadlockVisitsMax);
    if (cycle === null) continue;
    for (const { from } of cycle) seen.add(from);
    const members = cycle.map(({ wait }) => wait);
    if (members.some(({ waiterLeaseRef }) => (byRef.get(waiterLeaseRef)?.ageMs ?? 0) < LIMITS.standingDeadlockMs)) continue;
    const cycleOf = cycleMembers(
      members.map(({ waiterLeaseRef, resource }) => ({ waiterLeaseRef, waiterClientId: byRef.get(waiterLeaseRef)?.clientId ?? null, resource })),
    );
    const how =
      'One of these waits must end: the client cancels it, its wait limit ends it, or POST /v1/admin/locks/break takes what it waits for from its holder.';
    found.push(
      diagnosis({
        code: 'deadlock',
        severity: 'error',
        resource: members[0]?.resource ?? null,
        subject: members[0]?.waiterLeaseRef ?? '',
        evidence: { cycle: cycleOf, how },
      }),
    );
  }
  return found.slice(0, LIMITS.doctorFindingsMax);
}

/** `reason` null: only if the client is gone for certain. */
function endRemedy({ leaseRef, resources, state, gone }: LeaseCondition, endLease: EndLease, reason: string | null): Remedy {
  const names = resources.map(({ name }) => name).join(', ');
  const fencing = state === 'waiting' ? [] : [`raise the mark of ${names} to a token that nobody gets`];
  const ending = state === 'waiting' ? `take lease ${leaseRef} out of the line` : `end lease ${leaseRef} as broken`;
  const proof = `prove again that the client of lease ${leaseRef} is gone (${gone === 'session_ended' ? 'its session has ended' : 'silent for longer than its time to live'})`;
  return {
    fix: state === 'waiting' ? 'Take it out of the line.' : 'Fence, then end the lease: its holder is gone.',
    steps: [...(reason === null ? [proof] : []), ...fencing, reason === null ? ending : `${ending}, although its client may be alive`],
    subject: subjectOf(resources[0]),
    leaseRef,
    carryOut: async (caller) => {
      const came = await endLease(caller, leaseRef, reason);
      return [...fencing, came === 'ended' ? ending : `${ending}: as soon as the commit section that pins it has left`];
    },
  };
}

function evidenceOf(condition: LeaseCondition): Record<string, unknown> {
  const { leaseRef, clientId, principal, state, resources, sessionRef, silentMs, ttlMs, gone } = condition;
  return {
    lease_ref: leaseRef,
    client_id: clientId,
    principal,
    state,
    resources: resources.map(({ name }) => name),
    session_ref: sessionRef,
    silent_ms: silentMs === null ? null : Math.round(silentMs),
    ttl_ms: ttlMs,
    gone,
  };
}

function howToBreak({ state, gone, leaseRef, resources }: LeaseCondition, id: string): string | null {
  if (state === 'ending') return 'Its end is decided and takes effect when the write that it still carries is settled.';
  if (gone !== null) return null;
  const resource = JSON.stringify(resources[0]?.name ?? '');
  return (
    `The holder may be alive. POST /v1/admin/locks/break {"resource":${resource},"lease_refs":["${leaseRef}"],"reason":"...","grace_ms":60000} lets it finish what it does; ` +
    `POST /v1/admin/doctor/fixes {"finding_id":"${id}","force":true,"reason":"..."} (fencegate doctor --fix --force ${id} --reason ...) ends this lease ` +
    'at once. Either fences first.'
  );
}

function subjectOf(resource: Resource | undefined): Remedy['subject'] {
  return resource === undefined ? null : { volume: resource.volume, path: resource.path };
}

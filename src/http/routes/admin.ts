import type { Static } from '@sinclair/typebox';
import type { BreakReport, DoctorReport } from '../../domain/administration.ts';
import { refuse } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { isVolumeName } from '../../domain/resource.ts';
import { callerOf } from '../request-state.ts';
import {
  AdminSessions,
  AdminVolumes,
  BreakAnswer,
  type BreakAnswerBody,
  BreakBody,
  Doctor,
  type DoctorBody,
  Fence,
  FixAnswer,
  FixBody,
  ReasonBody,
  RebaseAnswer,
  SessionRefParams,
  SessionsQuery,
  VolumeNameParams,
  VolumeReady,
} from '../schemas/admin.ts';
import { answers } from '../schemas/common.ts';
import { FileParams } from '../schemas/files.ts';
import { END_IN_DOUBT } from '../schemas/leases.ts';
import type { RouteOptions, TypedApp } from '../typed-app.ts';
import { adminSessionJson, coordinatorJson, lockJson, mountJson, tokenText, volumeReadyJson } from '../views.ts';
import { handOver, resourceInBody, resourceOfRoute } from '../write-request.ts';

const CHANGE_CODES = [
  'cross_origin',
  'coordinator_suspended',
  'coordinator_unavailable',
  'journal_unavailable',
  'outcome_unknown',
  'body_too_large',
  'unsupported_media_type',
  'digest_mismatch',
  'incomplete_body',
  'upload_timeout',
] as const;

const GRACE_RUNS = 'The grace period runs, also over a restart. GET /v1/operations?request_id= tells what came of it: pending, committed, aborted';

const SAFE_AGAIN =
  'A break with lease_refs may be sent again whatever became of it; one without is of whoever holds the lock by then, so after an answer that did not arrive look first. With lease_refs of leases that ended otherwise it is 409 lease_not_held.';

const NOTHING_BROKEN =
  'A 404 not_found says that there is no lease to break. Where a program with a lock recipe of its own holds at the coordinator, its node is in the detail, and the first of such nodes are in foreign_contenders. Where the gateway cannot know who holds, it is 503, as GET /v1/locks/{volume}/{path} is then. A 503 coordinator_suspended with lease_refs: the session with the coordinator was lost before the break could fence anybody; these leases are lost, and its operation is aborted.';

/** What administrators see and may do. */
export function adminRoutes(app: TypedApp, options: RouteOptions): void {
  lockAdministration(app, options);
  diagnosis(app, options);
  fenceAdministration(app, options);
}

function lockAdministration(app: TypedApp, { deps }: RouteOptions): void {
  app.post(
    '/v1/admin/locks/break',
    {
      config: { access: 'admin', action: 'lease_break', namedBy: ['resource'] },
      schema: {
        tags: ['admin'],
        summary: 'End somebody’s lease: fences first',
        description: `${END_IN_DOUBT} ${SAFE_AGAIN} ${NOTHING_BROKEN}`,
        body: BreakBody,
        response: answers({ 200: { description: 'Broken', schema: BreakAnswer }, 202: { description: GRACE_RUNS, schema: BreakAnswer } }, [
          ...CHANGE_CODES,
          'invalid_path',
          'not_found',
          'volume_not_found',
          'volume_unavailable',
          'lease_not_found',
          'lease_not_held',
        ]),
      },
    },
    async (request, reply): Promise<BreakAnswerBody> => {
      const { resource: name, reason, grace_ms: graceMs = 0, lease_refs: leaseRefs } = request.body;
      const resource = resourceInBody(deps, request, name);
      const report = await deps.administration.breakLock(callerOf(request), {
        resource,
        reason,
        graceMs,
        ...(leaseRefs === undefined ? {} : { leaseRefs }),
      });
      reply.code(report.state === 'broken' ? 200 : 202);
      return breakJson(report);
    },
  );

  app.get(
    '/v1/admin/sessions',
    {
      config: { access: 'admin' },
      schema: {
        tags: ['admin'],
        summary: 'All sessions',
        description: 'In the order in which they were made; after a restart the order is new.',
        querystring: SessionsQuery,
        response: answers({ 200: { description: 'A page, by reference, without their secret ids', schema: AdminSessions } }, []),
      },
    },
    async (request) => {
      const { limit = LIMITS.listPageDefault, cursor = null } = request.query;
      const page = await deps.locks.sessionPage({ limit, cursor });
      return { sessions: page.sessions.map(adminSessionJson), next_cursor: page.nextCursor };
    },
  );

  app.delete(
    '/v1/admin/sessions/:session_ref',
    {
      config: { access: 'admin', action: 'lease_break' },
      schema: {
        tags: ['admin'],
        summary: 'End somebody’s session',
        description: END_IN_DOUBT,
        params: SessionRefParams,
        response: answers({ 204: { description: 'Ended', schema: null } }, [...CHANGE_CODES, 'session_not_found']),
      },
    },
    async (request, reply) => {
      await deps.locks.endSessionByRef(callerOf(request), request.params.session_ref);
      return reply.code(204).send();
    },
  );
}

function diagnosis(app: TypedApp, { deps }: RouteOptions): void {
  app.get(
    '/v1/admin/doctor',
    {
      config: { access: 'admin' },
      schema: {
        tags: ['admin'],
        summary: 'What is wrong, with evidence and fixes',
        response: answers({ 200: { description: 'One snapshot', schema: Doctor } }, []),
      },
    },
    async () => doctorJson(await deps.administration.doctor()),
  );

  app.post(
    '/v1/admin/doctor/fixes',
    {
      config: { access: 'admin', action: 'doctor_fix' },
      schema: {
        tags: ['admin'],
        summary: 'Carry out the fix of a finding',
        description: END_IN_DOUBT,
        body: FixBody,
        response: answers({ 200: { description: 'What was done, or would be', schema: FixAnswer } }, [...CHANGE_CODES, 'not_found']),
      },
    },
    async (request) => {
      const { finding_id: findingId, dry_run: dryRun = false, force = false, reason = null } = request.body;
      handOver(request);
      const report = await deps.administration.fix(callerOf(request), { findingId, dryRun, force, reason });
      return { dry_run: report.dryRun, steps: report.steps };
    },
  );

  app.get(
    '/v1/admin/volumes',
    {
      config: { access: 'admin' },
      schema: {
        tags: ['admin'],
        summary: 'All volumes with their state',
        response: answers({ 200: { description: 'From memory: a hung mount does not hold it up', schema: AdminVolumes } }, []),
      },
    },
    async () => ({
      volumes: deps.administration.volumes().map((volume) => ({
        ...volumeReadyJson(volume),
        path: volume.path,
        incarnation: volume.incarnation,
        read_only: volume.readOnly,
        mount: mountJson(volume.mount),
      })),
    }),
  );
}

function fenceAdministration(app: TypedApp, { deps }: RouteOptions): void {
  app.get(
    '/v1/admin/fences/:volume/:path',
    {
      config: { access: 'admin' },
      schema: {
        tags: ['admin'],
        summary: 'The fence of a resource',
        params: FileParams,
        response: answers({ 200: { description: 'null marks for a name never leased', schema: Fence } }, [
          'invalid_path',
          'not_found',
          'volume_not_found',
        ]),
      },
    },
    async (request) => {
      const fence = await deps.administration.fence(resourceOfRoute(deps, request, 'read'));
      return {
        resource: fence.resource.name,
        high_water_mark: tokenText(fence.highWaterMark),
        lease_ref: fence.leaseRef,
        principal: fence.principal,
        ever_named: fence.everNamed,
        floor: tokenText(fence.floor),
      };
    },
  );

  app.post(
    '/v1/admin/fences/rebase',
    {
      config: { access: 'admin', action: 'fence_rebase' },
      schema: {
        tags: ['admin'],
        summary: 'Start tokens anew above every mark, after a journal was restored or lost',
        body: ReasonBody,
        response: answers({ 200: { description: 'Rebased', schema: RebaseAnswer } }, CHANGE_CODES),
      },
    },
    async (request) => {
      handOver(request);
      const report = await deps.administration.rebase(callerOf(request), request.body.reason);
      return { base: report.base.toString(), volumes: report.volumes };
    },
  );

  app.post(
    '/v1/admin/volumes/:name/adopt',
    {
      config: { access: 'admin', action: 'volume_adopt' },
      schema: {
        tags: ['admin'],
        summary: 'Take over a volume that belongs to another gateway',
        params: VolumeNameParams,
        body: ReasonBody,
        response: answers({ 200: { description: 'Adopted', schema: VolumeReady } }, [...CHANGE_CODES, 'volume_not_found', 'volume_unavailable']),
      },
    },
    async (request) => {
      const { name } = request.params;
      if (!isVolumeName(name)) throw refuse('volume_not_found', 'There is no volume of this name.');
      request.state.subject = { volume: name, path: null };
      deps.volumes.policy(name);
      handOver(request);
      return volumeReadyJson(await deps.administration.adopt(callerOf(request), name, request.body.reason));
    },
  );
}

function breakJson(report: BreakReport): Static<typeof BreakAnswer> {
  return {
    resource: report.resource.name,
    state: report.state,
    high_water_mark: tokenText(report.highWaterMark),
    deadline: report.deadline,
    leases: report.leases.map((lease) => ({
      lease_ref: lease.leaseRef,
      client_id: lease.clientId,
      mode: lease.mode,
      fencing_token: tokenText(lease.fencingToken),
      operation_id: lease.operationId,
      committed: lease.committed.writes.map((write) => ({
        operation_id: write.operationId,
        action: write.action,
        resource: write.resource,
        at: write.at,
        etag_before: write.etagBefore,
        etag_after: write.etagAfter,
      })),
      committed_truncated: lease.committed.truncated,
    })),
  };
}

function doctorJson(report: DoctorReport): DoctorBody {
  return {
    at: report.at,
    healthy: report.healthy,
    findings: report.findings.map(({ id, code, severity, resource, evidence, fix }) => ({ id, code, severity, resource, evidence, fix })),
    sessions: report.sessions.map(adminSessionJson),
    locks: report.locks.map(lockJson),
    wait_for: report.waitFor.map((edge) => ({
      waiter_lease_ref: edge.waiterLeaseRef,
      holder_lease_ref: edge.holderLeaseRef,
      resource: edge.resource,
    })),
    coordinator: coordinatorJson(report.coordinator),
    volumes: report.volumes.map(volumeReadyJson),
  };
}

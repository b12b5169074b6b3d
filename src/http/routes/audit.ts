import { Readable } from 'node:stream';
import { Type } from '@sinclair/typebox';
import { stringify } from 'csv-stringify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { inScope } from '../../domain/access.ts';
import type { AuditFilter, AuditRecord } from '../../domain/audit-record.ts';
import { rfc3339 } from '../../domain/clock.ts';
import { refuse } from '../../domain/errors.ts';
import { parseFencingToken } from '../../domain/fencing-token.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Principal } from '../../domain/principal.ts';
import { acceptedType } from '../accepted-type.ts';
import type { HttpDeps } from '../http-deps.ts';
import { requestSignal } from '../request-signal.ts';
import { principalOf } from '../request-state.ts';
import { pathFromText } from '../request-target.ts';
import { AuditQuery, type AuditQueryValues, Chain, RECORD_COLUMNS, RecordPage, VerifyQuery } from '../schemas/audit.ts';
import { answers } from '../schemas/common.ts';
import type { RouteOptions, TypedApp } from '../typed-app.ts';
import { recordJson } from '../views.ts';

const JSON_TYPE = 'application/json';
const NDJSON = 'application/x-ndjson';
const CSV = 'text/csv';

/** Who wrote what, who was refused and why. */
export function auditRoutes(app: TypedApp, { deps }: RouteOptions): void {
  app.get(
    '/v1/audit',
    {
      config: { access: 'audit', exports: { [NDJSON]: Type.String(), [CSV]: Type.String() } },
      schema: {
        tags: ['audit'],
        summary: 'Audit records: a page as JSON, or everything that matches as NDJSON or CSV',
        querystring: AuditQuery,
        response: answers({ 200: { description: 'Newest first, unless order=asc', schema: RecordPage } }, [
          'invalid_token',
          'invalid_path',
          'journal_unavailable',
        ]),
      },
    },
    async (request, reply) => {
      const filter = filterOf(request.query);
      const principal = principalOf(request);
      const { order = 'desc', limit = LIMITS.auditPageDefault, cursor = null } = request.query;
      // A query sees every decision whose answer was sent before it, counted refusals too.
      await deps.refusals.flush();
      const type = request.method === 'HEAD' ? JSON_TYPE : acceptedType(request.headers.accept, [JSON_TYPE, NDJSON, CSV]);
      reply.header('vary', reply.hasHeader('vary') ? 'Origin, Accept' : 'Accept').header('cache-control', 'no-store');
      if (type !== JSON_TYPE) return exportAll(deps, request, reply, filter, order, type);
      const page = await deps.journal.audit(filter, { order, limit, cursor });
      return { records: page.records.filter((record) => visible(principal, record)).map(recordJson), next_cursor: page.nextCursor };
    },
  );

  app.get(
    '/v1/audit/verify',
    {
      config: { access: 'audit' },
      schema: {
        tags: ['audit'],
        summary: 'Recompute the chain',
        querystring: VerifyQuery,
        response: answers({ 200: { description: 'valid, or the first record that does not fit', schema: Chain } }, ['journal_unavailable']),
      },
    },
    async (request, reply) => {
      await deps.refusals.flush();
      const chain = await deps.journal.verify(request.query.from_seq ?? null, requestSignal(reply.raw, deps.deadline));
      return {
        valid: chain.valid,
        records: chain.records,
        first_seq: chain.firstSeq,
        last_seq: chain.lastSeq,
        head_hash: chain.headHash,
        first_bad_seq: chain.firstBadSeq,
        keyed_from_seq: chain.keyedFromSeq,
      };
    },
  );
}

/** Records without a resource concern the gateway as a whole: for auditors without a narrower scope. */
function visible(principal: Principal, record: AuditRecord): boolean {
  const { volume, path } = record;
  if (volume === null) return inScope(principal, '');
  return inScope(principal, path === null || path === '' ? volume : `${volume}/${path}`);
}

function exportAll(
  deps: HttpDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  filter: AuditFilter,
  order: 'asc' | 'desc',
  type: typeof NDJSON | typeof CSV,
): FastifyReply {
  const records = deps.journal.auditStream(filter, order, requestSignal(reply.raw, deps.deadline));
  const rows = rowsOf(records, principalOf(request));
  if (type === NDJSON) return reply.type(NDJSON).send(Readable.from(lines(rows)));
  // A cell that a spreadsheet would take for a formula is escaped.
  const csv = stringify({ header: true, columns: RECORD_COLUMNS, escape_formulas: true, record_delimiter: 'windows' });
  const source = Readable.from(rows);
  source.once('error', (error) => csv.destroy(error));
  csv.once('close', () => source.destroy());
  return reply.type(`${CSV}; charset=utf-8`).header('content-disposition', 'attachment; filename="audit.csv"').send(source.pipe(csv));
}

async function* rowsOf(records: AsyncIterable<AuditRecord>, principal: Principal): AsyncGenerator<ReturnType<typeof recordJson>> {
  for await (const record of records) if (visible(principal, record)) yield recordJson(record);
}

async function* lines(rows: AsyncIterable<object>): AsyncGenerator<string> {
  for await (const row of rows) yield `${JSON.stringify(row)}\n`;
}

const RFC_3339 = /^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})$/i;

/** Times are compared as text in the journal, so they are brought to one form here. */
function instant(text: string | undefined, name: string): string | undefined {
  if (text === undefined) return undefined;
  const ms = RFC_3339.test(text) && isDay(text.slice(0, 10)) ? Date.parse(text.replace(' ', 'T')) : Number.NaN;
  if (Number.isNaN(ms)) throw refuse('invalid_request', `${name} is a time like 2026-01-31T12:00:00Z.`);
  return rfc3339(ms);
}

/** `Date` takes the 30th of February for a day in March. */
function isDay(text: string): boolean {
  const ms = Date.parse(text);
  return !Number.isNaN(ms) && rfc3339(ms).startsWith(text);
}

function filterOf(query: AuditQueryValues): AuditFilter {
  const token = query.token === undefined ? undefined : parseFencingToken(query.token);
  if (query.token !== undefined && token === undefined) throw refuse('invalid_token', 'token is a decimal number from 1 to 2^63-1.');
  return defined({
    volume: query.volume,
    path: query.path === undefined ? undefined : pathFromText(query.path),
    pathPrefix: query.path_prefix,
    principal: query.principal,
    clientId: query.client_id,
    leaseRef: query.lease_ref,
    token,
    action: query.action,
    outcome: query.outcome,
    code: query.code,
    requestId: query.request_id,
    operationId: query.operation_id,
    since: instant(query.since, 'since'),
    until: instant(query.until, 'until'),
  });
}

function defined(fields: { readonly [K in keyof AuditFilter]: AuditFilter[K] | undefined }): AuditFilter {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ERROR_CODES, type ErrorCode, GatewayError } from '../../src/domain/errors.ts';
import { STATUS_TABLE } from '../../src/http/status.ts';
import { startHttp, type TestServer } from '../support/http-server.ts';

/** The table of the contract, written out once more: a change of the product's table must be meant. */
const CONTRACT: Readonly<Record<number, readonly ErrorCode[]>> = {
  400: ['invalid_token', 'invalid_path', 'invalid_request', 'digest_mismatch', 'incomplete_body', 'range_length_mismatch', 'ttl_out_of_range'],
  401: ['unauthenticated'],
  403: ['forbidden', 'token_not_issued', 'not_lease_owner', 'volume_read_only', 'cross_origin'],
  404: ['not_found', 'volume_not_found', 'lease_not_found', 'session_not_found', 'operation_not_found'],
  405: ['method_not_allowed'],
  408: ['upload_timeout'],
  409: [
    'is_a_directory',
    'not_a_directory',
    'directory_not_empty',
    'already_exists',
    'special_file',
    'symbolic_link',
    'multiple_links',
    'name_alias',
    'cross_volume',
    'same_resource',
    'offset_mismatch',
    'lock_not_acquired',
    'deadlock',
    'lease_not_held',
    'session_ended',
    'upgrade_conflict',
    'overlapping_lease',
    'idempotency_in_progress',
  ],
  411: ['length_required'],
  412: ['stale_token', 'lease_ended', 'lease_is_shared', 'precondition_failed'],
  413: ['body_too_large'],
  414: ['uri_too_long'],
  415: ['unsupported_media_type'],
  416: ['range_not_satisfiable'],
  417: ['expectation_failed'],
  421: ['wrong_host'],
  422: ['idempotency_key_reused'],
  423: ['resource_locked'],
  428: ['token_required'],
  429: ['rate_limited', 'queue_full', 'too_many_leases', 'too_many_sessions', 'too_many_uploads'],
  431: ['headers_too_large'],
  500: ['internal'],
  503: ['coordinator_suspended', 'coordinator_unavailable', 'volume_unavailable', 'journal_unavailable', 'overloaded', 'draining', 'outcome_unknown'],
  507: ['insufficient_storage'],
};
const rows = Object.entries(CONTRACT).flatMap(([status, codes]) => codes.map((code) => [code, Number(status)] as const));

let server: TestServer;
beforeAll(async () => {
  server = await startHttp();
});
afterAll(() => server.close());
beforeEach(() => {
  server.deps.writer.refusal = null;
});

test('the table has every code of the contract and no other', () => {
  expect(rows.map(([code]) => code).sort()).toEqual([...ERROR_CODES].sort());
});

test.each(rows)('%s leaves as %i, as a problem document', async (code, status) => {
  server.deps.writer.refusal = new GatewayError(code, { detail: 'Said plainly.', members: { operation_id: 'op_7', status: 1, code: 'forged' } });
  const answer = await server.fetch('/v1/files/demo/a.txt', { method: 'PUT', body: 'x' });
  expect(answer.status).toBe(status);
  expect(answer.headers.get('content-type')).toBe('application/problem+json');
  const body = (await answer.json()) as Record<string, unknown>;
  expect(body).toEqual({
    type: `/docs/problems/${code}`,
    title: STATUS_TABLE[code].title,
    status,
    detail: 'Said plainly.',
    code,
    operation_id: 'op_7',
    request_id: answer.headers.get('x-request-id'),
  });
});

test.each(rows.filter(([, status]) => [423, 429, 503].includes(status)))('%s has a Retry-After', async (code) => {
  server.deps.writer.refusal = new GatewayError(code, { detail: 'Later.' });
  const answer = await server.fetch('/v1/files/demo/a.txt', { method: 'PUT', body: 'x' });
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
});

test('Retry-After is in whole seconds, rounded up', async () => {
  server.deps.writer.refusal = new GatewayError('resource_locked', {
    detail: 'Held.',
    retryAfterMs: 2_001,
    members: { holder_client_id: 'batch', queue_length: 2 },
  });
  const answer = await server.fetch('/v1/files/demo/a.txt', { method: 'PUT', body: 'x' });
  expect(answer.headers.get('retry-after')).toBe('3');
  expect(await answer.json()).toMatchObject({ holder_client_id: 'batch', queue_length: 2 });
});

test.each(ERROR_CODES)('the type of %s has a page', async (code) => {
  const answer = await server.fetch(`/docs/problems/${code}`);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(await answer.text()).toContain(`HTTP status ${STATUS_TABLE[code].status}`);
});

test('what is not a GatewayError leaves as internal, without its words, and is logged', async () => {
  const secret = 'ENOENT /srv/secret';
  server.deps.writer.refusal = new Error(secret) as GatewayError;
  const answer = await server.fetch('/v1/files/demo/a.txt', { method: 'PUT', body: 'x' });
  expect(answer.status).toBe(500);
  const text = await answer.text();
  expect(JSON.parse(text)).toMatchObject({ code: 'internal' });
  expect(text).not.toContain('secret');
  expect(server.deps.logLines.join('')).toContain(secret);
});

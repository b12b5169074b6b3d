import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { SerializerSelector } from '@fastify/fast-json-stringify-compiler';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ERROR_CODES, refuse } from '../../src/domain/errors.ts';
import { startHttp, type TestServer } from '../support/http-server.ts';

interface Operation {
  readonly operationId: string;
  readonly security: readonly object[];
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly responses: Readonly<Record<string, { readonly description: string; readonly headers?: object; readonly content?: object }>>;
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

let server: TestServer;
let document: Document;
beforeAll(async () => {
  server = await startHttp({ authenticated: true });
  server.deps.principal = refuse('unauthenticated', 'Who are you?');
  document = (await (await server.fetch('/openapi.json')).json()) as Document;
});
afterAll(() => server.close());

/** The tables of the contract. */
const OPERATIONS: Readonly<Record<string, readonly string[]>> = {
  '/v1/files/{volume}/{path}': ['delete', 'get', 'head', 'patch', 'put'],
  '/v1/files/{volume}/{path}/': ['delete', 'get', 'head', 'post', 'put'],
  '/v1/moves': ['post'],
  '/v1/copies': ['post'],
  '/v1/volumes': ['get', 'head'],
  '/v1/operations': ['get', 'head'],
  '/v1/operations/{operation_id}': ['get', 'head'],
  '/v1/leases': ['post'],
  '/v1/leases/{lease_id}': ['delete', 'get', 'head'],
  '/v1/leases/{lease_id}/renew': ['post'],
  '/v1/leases/{lease_id}/convert': ['post'],
  '/v1/sessions': ['post'],
  '/v1/sessions/{session_id}': ['delete'],
  '/v1/sessions/{session_id}/heartbeat': ['post'],
  '/v1/sessions/heartbeats': ['post'],
  '/v1/sessions/{session_id}/watch': ['get', 'head'],
  '/v1/locks': ['get', 'head'],
  '/v1/locks/{volume}/{path}': ['get', 'head'],
  '/v1/watch': ['get', 'head'],
  '/v1/watch/{volume}/{path}': ['get', 'head'],
  '/v1/audit': ['get', 'head'],
  '/v1/audit/verify': ['get', 'head'],
  '/v1/admin/locks/break': ['post'],
  '/v1/admin/doctor': ['get', 'head'],
  '/v1/admin/doctor/fixes': ['post'],
  '/v1/admin/fences/{volume}/{path}': ['get', 'head'],
  '/v1/admin/fences/rebase': ['post'],
  '/v1/admin/volumes/{name}/adopt': ['post'],
  '/v1/admin/volumes': ['get', 'head'],
  '/v1/admin/sessions': ['get', 'head'],
  '/v1/admin/sessions/{session_ref}': ['delete'],
  '/healthz': ['get', 'head'],
  '/readyz': ['get', 'head'],
  '/metrics': ['get', 'head'],
  '/': ['get', 'head'],
  '/docs/problems/{code}': ['get', 'head'],
  '/openapi.json': ['get', 'head'],
};

test('the document has every path and method of the contract, and no other', () => {
  const found = Object.fromEntries(Object.entries(document.paths).map(([path, operations]) => [path, Object.keys(operations).sort()]));
  expect(found).toEqual(OPERATIONS);
});

test('every code is documented somewhere, and every problem as problem+json', () => {
  const text = JSON.stringify(document);
  const byMethodOnly = ['method_not_allowed'];
  expect(ERROR_CODES.filter((code) => !byMethodOnly.includes(code) && !text.includes(`\`${code}\``))).toEqual([]);
  for (const operations of Object.values(document.paths)) {
    for (const { operationId, responses } of Object.values(operations)) {
      for (const [status, answer] of Object.entries(responses)) {
        if (Number(status) >= 400 && operationId !== 'get_readyz' && operationId !== 'head_readyz')
          expect([operationId, status, Object.keys(answer.content ?? {})]).toEqual([operationId, status, ['application/problem+json']]);
        expect(answer.headers).toHaveProperty('X-Request-Id');
      }
    }
  }
});

test('every write documents its headers and those of its answer', () => {
  for (const method of ['put', 'patch', 'delete'] as const) {
    const operation = document.paths['/v1/files/{volume}/{path}']?.[method];
    const names = operation?.parameters?.filter((parameter) => parameter.in === 'header').map(({ name }) => name.toLowerCase());
    for (const name of [
      'x-fencing-token',
      'x-lease-id',
      'x-client-id',
      'x-lock-wait-ms',
      'x-lease-keepalive',
      'if-match',
      'if-none-match',
      'content-digest',
      'repr-digest',
      'idempotency-key',
    ])
      expect(names).toContain(name);
    for (const [status, answer] of Object.entries(operation?.responses ?? {}))
      if (Number(status) < 300) expect(answer.headers).toMatchObject({ 'X-Fencing-Token': {}, 'X-Operation-Id': {} });
  }
});

test('the bounds of a number are those that it is refused for', () => {
  interface Bounded {
    readonly anyOf: readonly { readonly minimum?: number; readonly maximum?: number }[];
  }
  interface WithBody {
    readonly requestBody: {
      readonly content: { readonly 'application/json': { readonly schema: { readonly properties: Record<string, Bounded> } } };
    };
  }
  const operation = document.paths['/v1/leases']?.['post'] as unknown as WithBody;
  const { properties } = operation.requestBody.content['application/json'].schema;
  const told = ['wait_ms', 'max_wait_ms', 'max_hold_ms', 'lock_delay_ms', 'priority'].map((name) => {
    const whole = properties[name]?.anyOf[0];
    return [name, whole?.minimum, whole?.maximum];
  });
  expect(told).toEqual([
    ['wait_ms', 0, 60_000],
    ['max_wait_ms', 1, Number.MAX_SAFE_INTEGER],
    ['max_hold_ms', 1_000, Number.MAX_SAFE_INTEGER],
    ['lock_delay_ms', 0, 3_600_000],
    ['priority', 0, 9],
  ]);
});

test('what needs an identity says so', () => {
  expect(document.paths['/v1/leases']?.['post']?.security).toEqual([{ bearer: [] }]);
  expect(document.paths['/healthz']?.['get']?.security).toEqual([]);
});

test('the document passes a linter; a trailing slash names a directory here', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'fencegate-openapi-'));
  try {
    const file = join(directory, 'openapi.json');
    await writeFile(file, JSON.stringify(document));
    const redocly = join(import.meta.dirname, '../../node_modules/.bin/redocly');
    const run = promisify(execFile)(redocly, ['lint', file, '--skip-rule', 'no-path-trailing-slash', '--format', 'json'], {
      cwd: directory,
      env: { ...process.env, REDOCLY_TELEMETRY: 'off' },
    });
    const { stdout } = await run.catch((error: { stdout: string }) => error);
    const result = JSON.parse(stdout.slice(stdout.indexOf('{'))) as { totals: { errors: number; warnings: number }; problems: unknown[] };
    expect([result.totals, result.problems]).toMatchObject([{ errors: 0, warnings: 0 }, []]);
  } finally {
    await rm(directory, { recursive: true });
  }
}, 60_000);

test('the reader is served from here, without credentials, and loads nothing from elsewhere', async () => {
  const page = await server.fetch('/docs/');
  expect(page.status).toBe(200);
  expect(page.headers.get('content-security-policy')).toContain("default-src 'self'");
  expect(await page.text()).not.toMatch(/(?:src|href)="https?:/);
  expect((await server.fetch('/docs/static/swagger-ui.css')).status).toBe(200);
  const start = await server.fetch('/');
  expect([start.status, start.headers.get('content-security-policy')]).toEqual([200, expect.stringContaining("default-src 'none'")]);
});

test('the schema of each answer makes a serializer, though a start makes none', () => {
  const { components } = document as unknown as { readonly components: object };
  const compile = SerializerSelector()({}, {} as never);
  const made = Object.entries(document.paths).flatMap(([url, methods]) =>
    Object.entries(methods).flatMap(([method, { responses }]) =>
      Object.entries(responses).flatMap(([httpStatus, { content = {} }]) =>
        Object.values(content as Readonly<Record<string, { readonly schema?: object }>>).flatMap(({ schema }) =>
          schema === undefined ? [] : [compile({ method, url, httpStatus, schema: { ...schema, components } as never })],
        ),
      ),
    ),
  );
  expect(made.length).toBeGreaterThan(200);
});

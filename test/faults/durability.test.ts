import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { GatewayProcess } from '../support/gateway-process.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { type Answer, type Sending, send } from '../support/http-client.ts';
import { describeWhere } from '../support/needs.ts';
import { cannotTrace, SyscallTrace } from '../support/syscall-trace.ts';

/**
 * What no test without a power cut could see: that a write asks the disk, in the right order, before it is answered (trap F1).
 * The system calls of the gateway are watched.
 */

let directory: string;
let gateway: GatewayProcess;

beforeAll(async () => {
  directory = await newDirectory();
  for (const parent of ['a', 'b']) await mkdir(join(directory, 'v', parent), { recursive: true });
  gateway = await GatewayProcess.start(directory, { outlivesTest: true });
  await writeFile(join(directory, 'v', 'a', 'before'), 'before');
});
afterAll(async () => {
  await gateway.kill();
  await removeDirectory(directory);
});

async function callsOf(name: string, request: Sending): Promise<{ readonly answer: Answer; readonly calls: readonly string[] }> {
  const trace = await SyscallTrace.of(gateway.pid, join(directory, `trace-${name}`));
  const answer = await send(gateway.url, request);
  const calls = await trace.end();
  return { answer, calls: calls.map((call) => call.replaceAll(directory, '')) };
}

/** The place of the first call that fits. */
function placeOf(calls: readonly string[], fits: RegExp): number {
  const place = calls.findIndex((call) => fits.test(call));
  expect(place, `${String(fits)} in\n${calls.join('\n')}`).toBeGreaterThanOrEqual(0);
  return place;
}

function expectInOrder(calls: readonly string[], ...inOrder: readonly RegExp[]): void {
  const places = inOrder.map((fits) => placeOf(calls, fits));
  expect(places, calls.join('\n')).toEqual(places.toSorted((a, b) => a - b));
}

const STAGED_SYNCED = /^f(data)?sync\(\d+<\/v\/\.fencegate\/[0-9a-f]{32}\/[^>]+>/;
const INTENT_DURABLE = /^f(data)?sync\(\d+<\/data\/journal\.sqlite-wal>/;
const synced = (path: string): RegExp => new RegExp(`^f(data)?sync\\(\\d+<${path}>`);
const renamedTo = (name: string): RegExp => new RegExp(`^rename(at2?)?\\(.*"/proc/self/fd/\\d+/${name}"`);
const ANSWERED = /"HTTP\/1\.1 20/;

describeWhere(cannotTrace, 'F1: before the answer', () => {
  it('PUT: staged bytes and intent are on the disk before the name changes, and the directory after it', async () => {
    const { answer, calls } = await callsOf('put', { method: 'PUT', path: '/v1/files/v/a/new', body: 'new' });
    expect(answer.status).toBe(201);
    expectInOrder(calls, STAGED_SYNCED, renamedTo('new'), synced('/v/a'), ANSWERED);
    expectInOrder(calls, INTENT_DURABLE, renamedTo('new'));
  });

  it('PUT below directories that are missing: each new name is synced in its parent', async () => {
    const { answer, calls } = await callsOf('parents', { method: 'PUT', path: '/v1/files/v/a/deep/er/file', body: 'new' });
    expect(answer.status).toBe(201);
    for (const parent of ['/v/a', '/v/a/deep', '/v/a/deep/er']) expectInOrder(calls, synced(parent), ANSWERED);
  });

  it('append: its bytes are on the disk', async () => {
    const headers = { 'x-update-range': 'append', 'content-type': 'application/octet-stream' };
    const { answer, calls } = await callsOf('append', { method: 'PATCH', path: '/v1/files/v/a/new', headers, body: 'tail' });
    expect(answer.status).toBe(200);
    // Side by side, in either order; both before the bytes.
    for (const first of [STAGED_SYNCED, INTENT_DURABLE]) expectInOrder(calls, first, synced('/v/a/new'), ANSWERED);
  });

  it('MOVE: both directories', async () => {
    const body = JSON.stringify({ from: 'v/a/before', to: 'v/b/after' });
    const { answer, calls } = await callsOf('move', { method: 'POST', path: '/v1/moves', headers: { 'content-type': 'application/json' }, body });
    expect(answer.status).toBe(201);
    for (const parent of ['/v/a', '/v/b']) expectInOrder(calls, INTENT_DURABLE, renamedTo('after'), synced(parent), ANSWERED);
  });

  it('DELETE: the directory', async () => {
    const { answer, calls } = await callsOf('delete', { method: 'DELETE', path: '/v1/files/v/b/after' });
    expect(answer.status).toBe(204);
    expectInOrder(calls, INTENT_DURABLE, /^rename(at2?)?\("\/proc\/self\/fd\/\d+\/after"/, synced('/v/b'), ANSWERED);
  });

  it('a refusal: its record', async () => {
    const { answer, calls } = await callsOf('refusal', {
      method: 'PUT',
      path: '/v1/files/v/a/new',
      headers: { 'x-fencing-token': '999999' },
      body: 'x',
    });
    expect(answer.status).toBe(403);
    expectInOrder(calls, INTENT_DURABLE, /"HTTP\/1\.1 403/);
  });

  it('a grant: its mark', async () => {
    const headers = { 'content-type': 'application/json' };
    const { answer, calls } = await callsOf('grant', { method: 'POST', path: '/v1/leases', headers, body: '{"resource":"v/leased"}' });
    expect(answer.status).toBe(201);
    expectInOrder(calls, INTENT_DURABLE, ANSWERED);
  });
});

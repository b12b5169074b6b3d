import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

describe('/openapi.json', () => {
  it('is a document that generators of clients accept', async () => {
    const file = join(gateway.directory, 'openapi.json');
    await writeFile(file, await (await fetch(`${gateway.url}/openapi.json`)).text());
    const environment = { PATH: process.env['PATH'], REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', NO_COLOR: '1' };
    const lint = spawnSync(join(ROOT, 'node_modules/.bin/redocly'), ['lint', '--format', 'stylish', file], {
      cwd: ROOT,
      encoding: 'utf8',
      env: environment,
    });
    expect([lint.status, lint.stdout]).toEqual([0, expect.any(String)]);
  });

  it('has every route of the gateway with exactly its methods, and what is not there is 405', async () => {
    const document = (await (await fetch(`${gateway.url}/openapi.json`)).json()) as { paths: Record<string, Record<string, unknown>> };
    const samples: Record<string, string> = {
      volume: 'v',
      path: 'a',
      lease_id: 'none',
      session_id: 'none',
      session_ref: 'none',
      operation_id: 'none',
      name: 'v',
      code: 'stale_token',
    };
    for (const [path, operations] of Object.entries(document.paths)) {
      const target = gateway.url + path.replace(/\{(\w+)\}/g, (_whole, name: string) => samples[name] ?? 'x');
      const documented = Object.keys(operations).map((method) => method.toUpperCase());
      const allowed = (await fetch(target, { method: 'OPTIONS' })).headers.get('allow')?.split(', ') ?? [];
      expect([path, allowed.filter((method) => method !== 'OPTIONS').sort()]).toEqual([path, documented.sort()]);
      // Its last segment could also be the id of a session: DELETE looks for that one.
      if (path === '/v1/sessions/heartbeats') continue;
      for (const method of ['GET', 'PUT', 'POST', 'PATCH', 'DELETE'].filter((one) => !documented.includes(one))) {
        const refused = await fetch(target, { method });
        expect([path, method, refused.status, refused.headers.get('allow')]).toEqual([path, method, 405, expect.stringContaining('OPTIONS')]);
      }
    }
  });
});

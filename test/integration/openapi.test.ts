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
});

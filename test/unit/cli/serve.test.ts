import { mkdtempSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { childScript } from '../../support/child-bundle.ts';
import { CliProcess } from '../../support/cli-process.ts';

let directory: string;
let running: CliProcess[];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'fencegate-cli-'));
  running = [];
});
afterEach(() => {
  for (const process of running) process.signal('SIGKILL');
});

function start(argv: readonly string[], environment: Record<string, string> = {}): CliProcess {
  const process = new CliProcess([childScript('fake-gateway-process'), ...argv], { UV_THREADPOOL_SIZE: '32', ...environment }, directory);
  running.push(process);
  return process;
}

async function result(process: CliProcess) {
  const { code, signal } = await process.ended();
  return { code, signal, stderr: process.stderr };
}

describe('the command line', () => {
  it('shows help when nothing is asked, and its version', async () => {
    const help = start([]);
    expect(await result(help)).toMatchObject({ code: 0 });
    expect(help.stdout).toContain('serve');
    const version = start(['--version']);
    expect(await result(version)).toMatchObject({ code: 0 });
    expect(version.stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it('refuses what it does not know with exit code 64 and a suggestion', async () => {
    const { code, stderr } = await result(start(['sevre']));
    expect(code).toBe(64);
    expect(stderr).toContain('serve');
  });

  it('makes a token whose hash a principals file takes', async () => {
    const process = start(['token', 'create']);
    await result(process);
    expect(process.stdout).toMatch(/^token: [A-Za-z0-9_-]{43}\ntoken_sha256: [0-9a-f]{64}\n$/);
  });
});

describe('serve', () => {
  it('reports every problem of the configuration on a line of its own and ends with 2', async () => {
    const { code, stderr } = await result(start(['serve'], { FENCEGATE_PORT: 'http', FENCEGATE_VOLUME: 'a=/a' }));
    expect(code).toBe(2);
    expect(stderr).toBe(
      'fencegate: FENCEGATE_VOLUME: unknown variable (did you mean FENCEGATE_VOLUMES?)\nfencegate: FENCEGATE_PORT="http": expected a whole number from 0 to 65535\n',
    );
  });

  it('refuses to run when the thread pool is smaller than the volumes need', async () => {
    const { code, stderr } = await result(start(['serve'], { UV_THREADPOOL_SIZE: '4' }));
    expect(code).toBe(1);
    expect(stderr).toBe(
      'fencegate: the thread pool is too small for the volumes: set UV_THREADPOOL_SIZE to 32, and start the gateway with bin/fencegate.cjs\n',
    );
  });

  it('says in one line why the start failed and ends with 1', async () => {
    const { code, stderr } = await result(start(['serve'], { FAKE_GATEWAY: 'refuses' }));
    expect(code).toBe(1);
    expect(stderr).toBe('fencegate: the volume demo belongs to another gateway: remove it or adopt it\n');
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('ends with 0 after %s', async (signal) => {
    const process = start(['serve']);
    await process.says('"message":"listening"');
    expect(statSync(join(directory, 'data/volumes/demo')).isDirectory()).toBe(true);
    process.signal(signal);
    expect(await result(process)).toEqual({ code: 0, signal: null, stderr: '' });
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('ends after %s also while its start waits for something', async (signal) => {
    const process = start(['serve'], { FAKE_GATEWAY: 'waits' });
    await process.says('starting');
    process.signal(signal);
    expect(await result(process)).toEqual({ code: 0, signal: null, stderr: '' });
    expect(process.stdout).toContain('stopped before the start was over');
  });

  it('says where it listens while its start waits for the coordinator; a signal ends it in order, with 0', async () => {
    const process = start(['serve'], { FAKE_GATEWAY: 'answers' });
    await process.says('"message":"waiting for the coordinator"');
    expect(process.stdout).toMatch(/"url":"http:[^\n]*"message":"waiting for the coordinator"/);
    process.signal('SIGTERM');
    expect(await result(process)).toEqual({ code: 0, signal: null, stderr: '' });
    expect(process.stdout).toContain('stopping in order');
    expect(process.stdout).not.toContain('"message":"listening"');
  });

  it('says in one line why a start failed that has listened already, and ends with 1', async () => {
    const { code, stderr } = await result(start(['serve'], { FAKE_GATEWAY: 'answers and refuses' }));
    expect([code, stderr]).toEqual([1, 'fencegate: the volume demo belongs to another gateway: remove it or adopt it\n']);
  });

  it('a second signal ends at once', async () => {
    const process = start(['serve'], { FAKE_GATEWAY: 'hangs' });
    await process.says('"message":"listening"');
    process.signal('SIGTERM');
    await process.says('a second signal ends at once');
    process.signal('SIGTERM');
    expect(await result(process)).toMatchObject({ code: 143 });
  });

  it('ends with 1 when it cannot go on', async () => {
    const process = start(['serve'], { FAKE_GATEWAY: 'fails' });
    expect(await result(process)).toMatchObject({ code: 1 });
    expect(process.stdout).toContain('another process took over');
  });

  it('reads the principals again at SIGHUP, and keeps the old ones when the new file is bad', async () => {
    const file = join(directory, 'auth.yaml');
    writeFileSync(file, 'principals: [{ name: a, roles: [admin] }]');
    const process = start(['serve'], { FENCEGATE_AUTH_FILE: file });
    await process.says('"message":"listening"');
    process.signal('SIGHUP');
    await process.says('the principals were read again');
    writeFileSync(file, 'principals: []');
    process.signal('SIGHUP');
    await process.says('the old ones stay in force');
    process.signal('SIGTERM');
    expect(await result(process)).toMatchObject({ code: 0 });
  });
});

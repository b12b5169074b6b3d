import { execFile } from 'node:child_process';
import { readFileSync, symlinkSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { credentials as channel, loadPackageDefinition, Metadata } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { markdownExamples, runExample } from '../support/code-examples.ts';
import { BIN } from '../support/command-line.ts';
import { type GrpcGateway, startGrpc } from '../support/grpc-gateway.ts';
import { bearerOf, principalsFile } from '../support/volumes-gateway.ts';

/** Every example as its users run it: a program of its own against a gateway process, without and with authentication. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);
const guide = markdownExamples('docs/grpc.md', readFileSync(join(ROOT, 'docs/grpc.md'), 'utf8'));
const WROTE = /^wrote under token \d+\na late write was refused: (stale_token|lease_ended)\nday,amount\nmonday,12\n$/;

describe.each([
  ['without authentication', {}, { FENCEGATE_AUTH_TOKEN: '' }],
  ['with authentication', { auth: principalsFile([{ name: 'admin', roles: ['admin'] }]) }, { FENCEGATE_AUTH_TOKEN: bearerOf('admin') }],
])('%s', (_what, options, credentials) => {
  let gateway: GrpcGateway;
  const environment = (): Record<string, string> => ({
    PATH: `${gateway.directory}:${process.env['PATH']}`,
    FENCEGATE_URL: gateway.process.url,
    ...credentials,
  });
  const example = async (command: string, ...args: string[]): Promise<string> => (await run(command, args, { cwd: ROOT, env: environment() })).stdout;

  beforeAll(async () => {
    gateway = await startGrpc({ ...options, environment: { FENCEGATE_VOLUMES: 'v=v,ledger=' } });
    symlinkSync(BIN, join(gateway.directory, 'fencegate'));
  });
  afterAll(() => gateway.stop());

  it('examples/curl.sh: lease, write, append, renew, and a late writer', async () => {
    expect(await example('bash', 'examples/curl.sh', 'v/curl/a b #ü.csv')).toMatch(WROTE);
    expect(await readFile(join(gateway.directory, 'v/curl/a b #ü.csv'), 'utf8')).toBe('day,amount\nmonday,12\n');
  });

  it('examples/python_stdlib.py: the same with the standard library of Python', async () => {
    expect(await example('python3', '-W', 'error', 'examples/python_stdlib.py', 'v/python/a ü.csv')).toMatch(WROTE);
    expect(await readFile(join(gateway.directory, 'v/python/a ü.csv'), 'utf8')).toBe('day,amount\nmonday,12\n');
  });

  describe('examples/close-quarter.sh', () => {
    const script = join(ROOT, 'examples/close-quarter.sh');
    const ledger = 'v/the books/q1 #ü.csv';
    const real = (): string => join(gateway.directory, ledger);

    it('closes the quarter under a lease of its own', async () => {
      await mkdir(join(real(), '..'), { recursive: true });
      await writeFile(real(), 'monday,12\n');
      const [, token] = /^v\/the books\/q1 #ü\.csv: 1 lines closed under token (\d+)\n$/.exec(await example(script, ledger)) ?? [];
      expect(await readFile(real(), 'utf8')).toBe(`monday,12\nclosed,1 lines,token ${token}\n`);
    });

    it('says why it was refused, and fails', async () => {
      const env = { ...environment(), FENCEGATE_RESOURCE: ledger, FENCEGATE_LEASE_ID: 'forged', FENCEGATE_FENCING_TOKEN: '1' };
      await expect(run(script, [ledger], { env })).rejects.toMatchObject({
        code: 22,
        stdout: '',
        stderr: expect.stringMatching(/ 412\n.*"stale_token"/),
      });
    });
  });

  it.each(guide)('$at runs', async ({ at, code }) => {
    const said: string[] = [];
    const here = code.replace('127.0.0.1:9090', `127.0.0.1:${gateway.port}`).replace("'proto/", `'${ROOT}proto/`);
    await runExample(
      { at, code: here },
      {
        credentials: channel,
        loadPackageDefinition,
        Metadata,
        loadSync,
        token: credentials.FENCEGATE_AUTH_TOKEN ?? '',
        console: { log: (line: string) => said.push(line) },
      },
    );
    expect(said.join()).toMatch(/^write with X-Fencing-Token: \d+$/);
  });

  it('examples/grpc.mjs: a client made from the .proto file alone', async () => {
    expect(await example(process.execPath, 'examples/grpc.mjs', `127.0.0.1:${gateway.port}`, 'v/grpc.csv')).toMatch(
      new RegExp(
        [
          'alice holds it under token \\d+',
          'bob tried: acquired false, lock_not_acquired',
          'bob holds it under a higher token: true',
          'alice was refused: FAILED_PRECONDITION, The lease (has ended|is not held)\\.',
          '(bob \\w+, )?alice GRANTED, (bob \\w+, )*alice RELEASED, bob GRANTED, bob RELEASED',
          '',
        ].join('\n'),
      ),
    );
  });
});

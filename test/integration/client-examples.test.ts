import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  clientFromEnvironment,
  FencegateClient,
  type FencegateClientOptions,
  FencegateError,
  isFencegateError,
  type LeaseHandle,
  RETRY_RULES,
} from '../../src/client/index.ts';
import { type CodeExample, docCommentExamples, markdownExamples, runExample } from '../support/code-examples.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SOURCES = join(ROOT, 'src/client');
const GUIDE = readFileSync(join(ROOT, 'docs/sdk.md'), 'utf8');
const VOLUMES = ['ledger', 'scans', 'accounts', 'demo'];

const doc = readdirSync(SOURCES).flatMap((name) => (name.endsWith('.ts') ? docCommentExamples(name, readFileSync(join(SOURCES, name), 'utf8')) : []));
const guide = markdownExamples('docs/sdk.md', GUIDE);

let gateway: TestGateway;

beforeAll(async () => {
  const directory = await newDirectory();
  for (const name of VOLUMES) await mkdir(join(directory, name));
  gateway = await startGateway({ directory, yaml: `volumes:\n${VOLUMES.map((name) => `  ${name}:\n    path: '{dir}/${name}'\n`).join('')}` });
});

beforeEach(async () => {
  for (const [name, bytes] of [
    ['ledger/q3.csv', 'a,1\n'],
    ['ledger/a.csv', 'a'],
    ['ledger/b.csv', 'b'],
    ['ledger/journal.log', ' '.repeat(1_024)],
    ['accounts/records.dat', ' '.repeat(64 * 20)],
    ['scans/0001.tif', 'scan'],
  ] as const) {
    await writeFile(join(gateway.directory, name), bytes);
  }
  await writeFile(join(gateway.directory, 'scan.tif'), 'another scan');
});

afterAll(async () => {
  await gateway.stop();
  await removeDirectory(gateway.directory);
});

/** Everything that an example does not make itself. */
async function run(example: CodeExample): Promise<void> {
  const made: FencegateClient[] = [];
  const Client = class extends FencegateClient {
    constructor(options: FencegateClientOptions) {
      super({ ...options, url: gateway.url });
      made.push(this);
    }
  };
  const client = new Client({});
  const needsLease = /\blease\./.test(example.code) && !/const lease|\(lease\)/.test(example.code);
  const names = ['ledger/q3.csv', 'ledger/journal.log', 'accounts/records.dat', 'scans/0001.tif'];
  const lease: LeaseHandle | null = needsLease ? await client.lease(names) : null;
  const local = { ...example, code: example.code.replaceAll('/tmp/scan.tif', join(gateway.directory, 'scan.tif')) };
  const nothing = (): undefined => undefined;
  const scope: Record<string, unknown> = {
    FencegateClient: Client,
    clientFromEnvironment: (environment: Record<string, string>) => {
      made.push(clientFromEnvironment(environment));
      return made.at(-1);
    },
    isFencegateError,
    environment: { FENCEGATE_URL: gateway.url },
    process: { env: { FENCEGATE_URL: gateway.url } },
    console: { log: nothing, error: nothing },
    error: new FencegateError('deadlock', { detail: 'an example' }),
    bytes: Buffer.from('bytes'),
    record: Buffer.alloc(64),
    a: 'a',
    b: 'b',
    input: 'input',
    invoice: 'invoice',
    signal: AbortSignal.timeout(10_000),
    close: (text: string) => text,
    draw: nothing,
    convertRates: nothing,
    pay: nothing,
    ...(/const client\b/.test(example.code) ? {} : { client }),
    ...(lease === null ? {} : { lease }),
  };
  // A watch needs something to see: leases that come and go, one after the other, so that each is really released.
  let stirring = example.code.includes('client.watch');
  const stir = (async () => {
    while (stirring) {
      await client.withLease('ledger/q3.csv', {}, nothing);
      await new Promise((resolve) => setImmediate(resolve));
    }
  })();
  try {
    await runExample(local, scope);
  } finally {
    stirring = false;
    await stir;
    for (const one of made) await one.close();
  }
}

describe('the examples', () => {
  it('are there', () => {
    expect(doc.length).toBeGreaterThan(12);
    expect(guide.length).toBeGreaterThan(4);
  });

  it.each(doc)('$at runs', run);
  it.each(guide)('$at runs', run);

  it('examples/sdk.mjs runs against a gateway, as a program of its own', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ['examples/sdk.mjs'], {
      cwd: ROOT,
      env: { ...process.env, FENCEGATE_URL: gateway.url },
    });
    // When she is told before she writes, nothing is sent, and nothing is refused.
    expect(stdout).toMatch(
      /^alice wrote under token \d+\n(alice was refused: lease_lost\nday,amount\nmonday,12\ntuesday,7\n|alice was refused: stale_token\nday,amount\nmonday,12\ntuesday,7\naudit: append by alice rejected, stale_token\n)$/,
    );
    expect(await readFile(join(gateway.directory, 'demo/example/ledger.csv'), 'utf8')).toContain('tuesday,7');
  });
});

describe('the guide', () => {
  it('has the table of what is tried again', () => {
    const rows = [...GUIDE.matchAll(/^\| `(\w+)` \| (keyed|unchanged) \|$/gm)].map(([, code, rule]) => [code, rule]);
    expect(rows).toEqual(Object.entries(RETRY_RULES));
  });
});

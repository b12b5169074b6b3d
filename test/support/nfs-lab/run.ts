/**
 * `npm run test:nfs [-- --short] [-- --only NAME] [-- FILES AND OPTIONS OF VITEST]`: the suites over volumes on real NFS mounts, each way of
 * mounting in a guest of its own (`./nfs-lab`). The last line is the sum. Where no guest can be started one line says so, and nothing has failed.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { installForNfs } from '../debian-packages.ts';
import { setup } from '../global-setup.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const LAB = fileURLToPath(new URL('./nfs-lab', import.meta.url));

interface Variant {
  readonly name: string;
  readonly version: '4.2' | '3';
  readonly lab: readonly string[];
  /** What vitest runs, whole and in the short form. */
  readonly suites: readonly string[];
  readonly short: readonly string[] | null;
}

const EVERYTHING = ['--project', 'nfs', '--project', 'storage', '--project', 'faults'];
/** A call is given up after 9 s, which is later than the gateway gives it up. */
const SOFT = ['-o', 'soft,timeo=30,retrans=1'];
const SMALL = ['-s', '16M'] as const;
/** Of an export with this much for its one user, in KiB. */
const QUOTA = ['-q', '8192'];
const FULL = ['--project', 'nfs', 'full'];

/** In the short form one guest stands for all: the version and the mount that are recommended, on the export that is soon full. */
const VARIANTS: readonly Variant[] = [
  { name: '4.2-hard-small', version: '4.2', lab: SMALL, suites: FULL, short: ['--project', 'nfs'] },
  { name: '3-hard-small', version: '3', lab: SMALL, suites: FULL, short: null },
  { name: '4.2-quota', version: '4.2', lab: QUOTA, suites: FULL, short: null },
  { name: '3-quota', version: '3', lab: QUOTA, suites: FULL, short: null },
  { name: '4.2-soft-small', version: '4.2', lab: [...SOFT, ...SMALL], suites: FULL, short: null },
  { name: '3-soft-small', version: '3', lab: [...SOFT, ...SMALL], suites: FULL, short: null },
  { name: '4.2-soft-quota', version: '4.2', lab: [...SOFT, ...QUOTA], suites: FULL, short: null },
  { name: '3-soft-quota', version: '3', lab: [...SOFT, ...QUOTA], suites: FULL, short: null },
  { name: '4.2-hard', version: '4.2', lab: [], suites: EVERYTHING, short: null },
  { name: '3-hard', version: '3', lab: [], suites: EVERYTHING, short: null },
  { name: '4.2-soft', version: '4.2', lab: SOFT, suites: EVERYTHING, short: null },
  { name: '3-soft', version: '3', lab: SOFT, suites: EVERYTHING, short: null },
];

/** A guest that runs longer is ended. */
const SHORT_SECONDS = 450;
const LONG_SECONDS = 14_400;
/** The lab ends its guest by itself; one that cannot is ended from here. */
const GRACE_SECONDS = 90;

interface Sum {
  passed: number;
  failed: number;
  skipped: number;
}

interface VitestReport {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
  readonly testResults: readonly { readonly status: string; readonly assertionResults: readonly unknown[] }[];
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** The last line of what the lab said when it cannot be used here; `null` when it can. */
function cannotBoot(): string | null {
  const tried = spawnSync(LAB, ['-t', '30', '--', 'true'], { cwd: ROOT, encoding: 'utf8' });
  return tried.status === 0 ? null : (tried.stderr.trim().split('\n').at(-1) ?? 'no reason given');
}

function run(variant: Variant, suites: readonly string[], seconds: number, sum: Sum): void {
  const reports = mkdtempSync(join(tmpdir(), 'fencegate-nfs-'));
  const report = join(reports, 'report.json');
  const vitest = ['run', '--config', 'vitest.nfs.config.ts', ...suites, '--reporter=verbose', '--reporter=json', `--outputFile.json=${report}`];
  say(`== NFS ${variant.name}`);
  const size = variant.name.endsWith('-small') ? SMALL[1] : '';
  const environment = [
    'TEST_VOLUMES=/mnt/nfs',
    `TEST_NFS=${variant.name}`,
    `TEST_NFS_VERSION=${variant.version}`,
    `TEST_NFS_SIZE=${size}`,
    'NO_COLOR=1',
  ];
  const args = [
    '-t',
    String(seconds),
    '-v',
    variant.version,
    ...variant.lab,
    '-w',
    reports,
    '--',
    'env',
    ...environment,
    process.execPath,
    'node_modules/vitest/vitest.mjs',
    ...vitest,
  ];
  const { status } = spawnSync(LAB, args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'], timeout: (seconds + GRACE_SECONDS) * 1_000 });
  try {
    const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, testResults } = JSON.parse(readFileSync(report, 'utf8')) as VitestReport;
    const unloaded = testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0).length;
    sum.passed += numPassedTests;
    sum.failed += Math.max(numFailedTests + unloaded, status === 0 ? 0 : 1);
    sum.skipped += numPendingTests + numTodoTests;
  } catch {
    // No report: the guest ended first (its time was up, or it fell over).
    sum.failed += 1;
    say(`NFS ${variant.name}: no report, the guest ended with ${String(status)}`);
  } finally {
    rmSync(reports, { recursive: true, force: true });
  }
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({ options: { short: { type: 'boolean' }, only: { type: 'string' } }, allowPositionals: true });
  if (values.only !== undefined && !VARIANTS.some(({ name }) => name === values.only))
    throw new Error(`there is no ${values.only}; there are ${VARIANTS.map(({ name }) => name).join(', ')}`);
  const sum: Sum = { passed: 0, failed: 0, skipped: 0 };
  const missing = installForNfs();
  const problem = missing ?? cannotBoot();
  if (problem === null) {
    await setup();
    for (const variant of VARIANTS) {
      if (values.only !== undefined && values.only !== variant.name) continue;
      const suites = values.short === true ? variant.short : variant.suites;
      if (suites !== null) run(variant, positionals.length > 0 ? positionals : suites, values.short === true ? SHORT_SECONDS : LONG_SECONDS, sum);
    }
  } else {
    sum.skipped += 1;
    say(`NFS is not shown here: ${problem}`);
  }
  say(`nfs: ${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`);
  process.exitCode = sum.failed === 0 ? 0 : 1;
}

await main();

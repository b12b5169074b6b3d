/**
 * `npm run test:nfs [-- --short] [-- --only NAME]`: the suites over volumes on real NFS mounts, each way of mounting in a guest of its own
 * (`./nfs-lab`). The last line is the sum. Where no guest can be started one line says so, and nothing has failed.
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
  readonly lab: readonly string[];
  /** What vitest runs, whole and in the short form. */
  readonly suites: readonly string[];
  readonly short: readonly string[] | null;
}

const EVERYTHING = ['--project', 'nfs', '--project', 'storage', '--project', 'faults'];
const SHORT = ['--project', 'nfs', 'second-client', 'names', 'mount'];
const soft = ['-o', 'soft,timeo=50,retrans=2'];

const VARIANTS: readonly Variant[] = [
  { name: '4.2-hard', lab: ['-v', '4.2'], suites: EVERYTHING, short: [...SHORT, 'late-writer', 'cut-off'] },
  { name: '3-hard', lab: ['-v', '3'], suites: EVERYTHING, short: [...SHORT, 'late-writer'] },
  { name: '4.2-soft', lab: ['-v', '4.2', ...soft], suites: ['--project', 'nfs', '--project', 'storage'], short: null },
  { name: '3-soft', lab: ['-v', '3', ...soft], suites: ['--project', 'nfs', '--project', 'storage'], short: null },
  { name: '4.2-full', lab: ['-v', '4.2', '-s', '16M'], suites: ['--project', 'nfs', 'full'], short: ['--project', 'nfs', 'full'] },
  { name: '3-full', lab: ['-v', '3', '-s', '16M'], suites: ['--project', 'nfs', 'full'], short: null },
];

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
  const [, version = ''] = variant.lab;
  const vitest = ['run', '--config', 'vitest.nfs.config.ts', ...suites, '--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  say(`== NFS ${variant.name}`);
  const environment = ['TEST_VOLUMES=/mnt/nfs', `TEST_NFS=${variant.name}`, `TEST_NFS_VERSION=${version}`, 'NO_COLOR=1'];
  const args = [
    '-t',
    String(seconds),
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
  const { status } = spawnSync(LAB, args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] });
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

function main(): void {
  const { values, positionals } = parseArgs({ options: { short: { type: 'boolean' }, only: { type: 'string' } }, allowPositionals: true });
  const sum: Sum = { passed: 0, failed: 0, skipped: 0 };
  const missing = installForNfs();
  const problem = missing ?? cannotBoot();
  if (problem === null) {
    setup();
    for (const variant of VARIANTS) {
      if (values.only !== undefined && values.only !== variant.name) continue;
      const suites = values.short === true ? variant.short : variant.suites;
      if (suites !== null) run(variant, positionals.length > 0 ? positionals : suites, values.short === true ? 240 : 3_000, sum);
    }
  } else {
    sum.skipped += 1;
    say(`NFS is not shown here: ${problem}`);
  }
  say(`nfs: ${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`);
  process.exitCode = sum.failed === 0 ? 0 : 1;
}

main();

import type { DoctorFinding, DoctorReport } from '../../client/contract/answers.ts';
import { type FencegateError, isFencegateError } from '../../client/errors.ts';
import type { FencegateClient } from '../../client/fencegate-client.ts';
import type { CommandContext } from '../command-context.ts';
import { type ConnectionFlags, withClient, withOrder } from '../connection.ts';
import { EXIT } from '../exit-codes.ts';
import { printable } from '../printable.ts';
import { outJson } from '../screen.ts';
import { outFacts, outTable } from '../table.ts';
import { UsageError } from '../usage-error.ts';

export interface DoctorFlags extends ConnectionFlags {
  readonly json?: boolean;
  readonly fix?: boolean;
  readonly dryRun?: boolean;
  readonly force?: string;
  readonly reason?: string;
}

interface Fixed {
  readonly finding_id: string;
  readonly dry_run: boolean;
  readonly steps: readonly string[];
}

/** `refusal`: what the gateway said of a finding that it does not have, or not with such a fix. */
interface Fixes {
  readonly fixed: readonly Fixed[];
  readonly refusal: FencegateError | null;
}

const NOTHING: Fixes = { fixed: [], refusal: null };

/** Ends with 0 unless a finding is of severity error; after `--fix`, unless one is left. */
export async function askDoctor(context: CommandContext, flags: DoctorFlags): Promise<number> {
  if (flags.dryRun === true && flags.fix !== true) throw new UsageError('--dry-run goes with --fix');
  if (flags.force !== undefined && (flags.fix !== true || flags.reason === undefined)) throw new UsageError('--force goes with --fix and --reason');
  if (flags.reason !== undefined && flags.force === undefined) throw new UsageError('--reason goes with --force');
  const look = () => withClient(context, flags, (client, signal) => client.administration.doctor({ signal }));
  const first = await look();
  const { fixed, refusal } =
    flags.fix === true ? await withOrder(context, flags, (client, signal) => fix(client, first.findings, flags, signal)) : NOTHING;
  // Force means one finding, and there is none to report beside it.
  if (refusal !== null && flags.force !== undefined) {
    context.host.complain(printable(`${refusal.code}: ${refusal.message}`));
    context.host.complain('next: fencegate doctor shows the findings with their ids, and what can be done about each');
    return EXIT.failed;
  }
  const changed = refusal !== null || fixed.some((one) => !one.dry_run);
  const report = changed ? await look() : first;
  if (flags.json === true) outJson(context.screen, flags.fix === true ? { ...report, fixed } : report);
  else await outReport(context, first, fixed, changed ? report : null);
  return report.findings.some(({ severity }) => severity === 'error') ? EXIT.failed : EXIT.ok;
}

async function fix(client: FencegateClient, findings: readonly DoctorFinding[], flags: DoctorFlags, signal: AbortSignal): Promise<Fixes> {
  const { dryRun = false, force: id, reason } = flags;
  const forced = id === undefined || reason === undefined ? {} : { force: true, reason };
  // Force means one lease, never whatever else is found.
  const ids = id === undefined ? findings.filter((finding) => finding.fix !== null).map((finding) => finding.id) : [id];
  const fixed: Fixed[] = [];
  let refusal: Fixes['refusal'] = null;
  for (const one of ids) {
    try {
      fixed.push({ finding_id: one, ...(await client.administration.fix(one, { dryRun, ...forced, signal })) });
    } catch (thrown) {
      // It went away by itself: no reason to leave the others as they are.
      if (!isFencegateError(thrown, 'not_found')) throw thrown;
      refusal = thrown;
    }
  }
  return { fixed, refusal };
}

async function outReport({ screen }: CommandContext, report: DoctorReport, fixed: readonly Fixed[], left: DoctorReport | null): Promise<void> {
  const { coordinator, volumes, sessions, locks, findings } = report;
  outFacts(screen, {
    coordinator: `${coordinator.kind}, ${coordinator.state}`,
    volumes: volumes.map(({ name, state, fence_level: level }) => `${name} ${state} (${level})`).join(', '),
    sessions: sessions.length,
    locks: locks.length,
  });
  screen.out('\n');
  if (findings.length === 0) screen.out('nothing is wrong\n');
  else {
    const rows = findings.map((finding) => [
      finding.severity,
      finding.code,
      finding.resource,
      finding.fix ?? (finding.evidence['needs_force'] === true ? 'with --force' : 'by hand'),
    ]);
    await outTable(screen, ['SEVERITY', 'FINDING', 'RESOURCE', 'FIX'], rows);
    for (const { id, code, resource, evidence } of findings) {
      screen.out(`\n${code}${resource === null ? '' : ` ${printable(resource)}`}\n  id: ${printable(id)}\n`);
      for (const [name, value] of Object.entries(evidence))
        screen.out(`  ${name}: ${printable(typeof value === 'string' ? value : JSON.stringify(value))}\n`);
    }
  }
  for (const { finding_id: id, dry_run: dryRun, steps } of fixed) {
    screen.out(`\n${dryRun ? 'would fix' : 'fixed'} ${id}\n`);
    for (const step of steps) screen.out(`  ${printable(step)}\n`);
  }
  if (left !== null)
    screen.out(`\n${left.findings.length === 0 ? 'nothing is left' : `left: ${left.findings.map(({ code }) => code).join(', ')}`}\n`);
}

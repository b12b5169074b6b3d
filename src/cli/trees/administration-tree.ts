import { type Command, InvalidArgumentError, Option } from 'commander';
import type { CommandContext } from '../command-context.ts';
import type { AuditFlags } from '../commands/audit.ts';
import type { DoctorFlags } from '../commands/doctor.ts';
import type { OrderFlags } from '../commands/fence.ts';
import type { LeaseFlags } from '../commands/lease.ts';
import { durationMs, timeMs } from '../durations.ts';
import { duration, examples, group, type Run, wholeNumber, withAnswer } from './flags.ts';

const RECORDS_DEFAULT = 20;
const RECORDS_MAX = 1_000_000;
const OUTCOMES = ['committed', 'rejected', 'aborted', 'unknown', 'pending'];

/** For auditors and administrators. */
export function addAdministrationCommands(program: Command, context: CommandContext, run: Run): void {
  addAudit(program, context, run);
  const fence = group(
    program,
    'fence',
    'high-water marks',
    'fencegate fence show demo/ledger/q3.csv',
    "fencegate fence rebase --reason 'journal restored from 2026-03-01'",
  );
  withAnswer(fence.command('show'))
    .description('the mark of a resource; for administrators')
    .argument('<resource>', 'VOL/PATH')
    .addHelpText('after', examples('fencegate fence show demo/ledger/q3.csv'))
    .action((resource: string, flags: LeaseFlags) => run(async () => (await import('../commands/fence.ts')).showFence(context, resource, flags)));
  asOrder(fence.command('rebase'))
    .description('let tokens go on above every mark, after the journal was restored or lost; every lease ends')
    .addHelpText('after', examples("fencegate fence rebase --reason 'journal restored from 2026-03-01'"))
    .action((flags: OrderFlags) => run(async () => (await import('../commands/fence.ts')).rebaseFences(context, flags)));
  const volume = group(program, 'volume', 'volumes', "fencegate volume adopt books --reason 'the old host burnt down'");
  asOrder(volume.command('adopt'))
    .description('take over a volume that belongs to another gateway, which must be gone for good')
    .argument('<volume>', 'its name here')
    .addHelpText('after', examples("fencegate volume adopt books --offline --reason 'the old host burnt down'"))
    .action((volume: string, flags: OrderFlags) => run(async () => (await import('../commands/fence.ts')).adoptVolume(context, volume, flags)));
  withAnswer(program.command('doctor'))
    .description('what is wrong, with evidence; exit code 1 when a finding is of severity error')
    .option('--fix', 'carry out the fixes that are safe')
    .option('--force <finding>', 'with --fix: only this one, and although its client may be alive; needs --reason')
    .option('--reason <text>', 'with --force: why; goes into the audit log')
    .option('--dry-run', 'with --fix: only tell what would be done')
    .addHelpText(
      'after',
      examples(
        'fencegate doctor',
        'fencegate doctor --fix --dry-run',
        "fencegate doctor --fix --force held_long.0123456789abcdef --reason 'host is down'",
      ),
    )
    .action((flags: DoctorFlags) => run(async () => (await import('../commands/doctor.ts')).askDoctor(context, flags)));
}

function asOrder(command: Command): Command {
  return withAnswer(command)
    .requiredOption('--reason <text>', 'why; goes into the audit log')
    .option('--offline', 'in FENCEGATE_DATA_DIR, when the gateway does not run');
}

function addAudit(program: Command, context: CommandContext, run: Run): void {
  withAnswer(program.command('audit'))
    .description('what was decided, and why; with --json one record a line')
    .argument('[place]', 'VOL or VOL/PATH')
    .option('--follow', 'go on with what comes, until Ctrl-C')
    .option('--verify', 'recompute the chain of the whole log instead; exit code 1 when it is broken')
    .option('--limit <number>', 'the newest so many', wholeNumber(1, RECORDS_MAX), RECORDS_DEFAULT)
    .option('--every <duration>', 'how often --follow asks; default 1s', duration)
    .option('--path-prefix <prefix>', 'paths that begin like this')
    .option('--principal <name>')
    .option('--client <label>')
    .option('--lease-ref <ref>')
    .option('--token <number>', 'fencing token')
    .option('--action <action>', 'put, delete, lease_grant, ...')
    .addOption(new Option('--outcome <outcome>').choices(OUTCOMES))
    .option('--code <code>', 'stale_token, lease_ended, ...')
    .option('--request <id>')
    .option('--operation <id>')
    .option('--since <time>', 'RFC 3339, or how long ago: 10m', timeOrAgo)
    .option('--until <time>', 'the same, not included', timeOrAgo)
    .addHelpText(
      'after',
      examples('fencegate audit demo/ledger/q3.csv', 'fencegate audit --outcome rejected --since 1h', 'fencegate audit --follow --json'),
    )
    .action((place: string | undefined, flags: AuditFlags) =>
      run(async () => (await import('../commands/audit.ts')).showAudit(context, place, flags)),
    );
}

function timeOrAgo(text: string): string {
  const agoMs = durationMs(text);
  const atMs = agoMs === null ? timeMs(text) : Date.now() - agoMs;
  if (atMs === null) throw new InvalidArgumentError('Write a time as 2026-03-01T08:00:00Z, or how long ago as 10m.');
  return new Date(atMs).toISOString();
}

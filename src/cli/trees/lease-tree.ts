import { type Command, Option } from 'commander';
import type { CommandContext } from '../command-context.ts';
import type { ExecFlags, LeaseFlags } from '../commands/exec.ts';
import type { AcquireFlags, LeaseFlags as PlainLeaseFlags, RenewFlags } from '../commands/lease.ts';
import type { BreakFlags, ListLocksFlags } from '../commands/lock.ts';
import { duration, examples, group, type Run, wholeNumber, withAnswer, withConnection } from './flags.ts';

const EXEC_HELP = `
The command gets FENCEGATE_URL, FENCEGATE_RESOURCE, FENCEGATE_LEASE_ID and FENCEGATE_FENCING_TOKEN. Its writes through the gateway carry the token;
a command that writes the mount directly is NOT fenced: it is only ended in time, and nothing checks what it writes. It has a session and a
process group of its own; signals are passed on to it. Processes that it leaves behind when it ends are left alone, without a lease.
When the lease is lost, whatever it has started is killed, in other sessions, too; only a daemon whose parents have ended is not found.

Exit code: that of the command (128 + n after signal n), or 64 wrong usage, 65 write refused, 69 gateway not reached, 70 lease lost, 75 lock not
acquired in time, 77 no right, 126 and 127 the command could not be run or was not found.
`;

/** Leases, and what runs under them. */
export function addLeaseCommands(program: Command, context: CommandContext, run: Run): void {
  withLeaseTimes(withConnection(program.command('exec').requiredOption('--lock <resource>', 'VOL/PATH to hold while the command runs')))
    .description('run a command under a lease; end it before the lease can end')
    .argument('<command...>', 'after --')
    .option('--shared', 'a lease that several may hold at once, and that writes nothing')
    .addHelpText(
      'after',
      `${EXEC_HELP}${examples('fencegate exec --lock demo/ledger/q3.csv -- ./close-quarter.sh', 'fencegate exec --lock demo/ledger/q3.csv --wait 5m --ttl 10s -- fencegate put q3.csv demo/ledger/q3.csv')}`,
    )
    .action((command: string[], flags: ExecFlags) => run(async () => (await import('../commands/exec.ts')).execUnderLock(context, command, flags)));
  withLeaseTimes(withConnection(program.command('edit')))
    .description('take a lease, get the file, run a command on the local copy, put it back')
    .argument('<resource>', 'VOL/PATH')
    .argument('<command...>', 'after --, with {} where the name of the copy goes')
    .addHelpText(
      'after',
      `\nNothing is put back when the command fails, changes nothing, or the lease is lost; a changed copy is kept then.\n${examples("fencegate edit demo/ledger/q3.csv -- sed -i 's/draft/final/' {}", 'fencegate edit demo/notes.txt -- vi {}')}`,
    )
    .action((resource: string, command: string[], flags: LeaseFlags) =>
      run(async () => (await import('../commands/edit.ts')).editFile(context, resource, command, flags), 'writes'),
    );
  addPlainLeases(
    group(
      program,
      'lease',
      'leases for scripts: they live until they are released, or their time is over',
      'eval "$(fencegate lease acquire demo/ledger/q3.csv --ttl 1m --export)"',
      'fencegate lease renew',
      'fencegate lease release',
    ),
    context,
    run,
  );
  addLocks(group(program, 'lock', 'who holds what', 'fencegate lock list', 'fencegate lock show demo/ledger/q3.csv'), context, run);
}

function withLeaseTimes(command: Command): Command {
  return command
    .option('--wait <duration>', 'how long to stand in line; 0 tries once; default 30s', duration)
    .option('--ttl <duration>', 'how long the lease outlives us; 1s to 1h, default 30s', duration)
    .option('--grace <duration>', 'from SIGTERM to SIGKILL, both before the lease can end; default 5s, or a sixth of --ttl or --max-hold', duration)
    .option('--max-hold <duration>', 'end the lease then, however long the command takes, and the command in time before', duration)
    .option('--priority <number>', '0 to 9; passes others in line, a bounded number of times; default 5', wholeNumber(0, 9))
    .option('--reason <text>', 'what the lease is for, as lock show tells others');
}

function addPlainLeases(lease: Command, context: CommandContext, run: Run): void {
  const id = 'default: FENCEGATE_LEASE_ID, which is the better place for a secret';
  withAnswer(lease.command('acquire'))
    .description('take a lease that outlives this command; nobody renews it')
    .argument('<resource>', 'VOL/PATH')
    .option('--shared', 'a lease that several may hold at once, and that writes nothing')
    .option('--wait <duration>', 'how long to stand in line; default 0: tries once', duration)
    .option('--ttl <duration>', 'how long it lives without renew; default 30s', duration)
    .option('--reason <text>', 'what the lease is for, as lock show tells others')
    .option('--export', 'print lines for a shell to evaluate')
    .addHelpText(
      'after',
      examples('fencegate lease acquire demo/ledger/q3.csv --ttl 1m', 'eval "$(fencegate lease acquire demo/ledger/q3.csv --export)"'),
    )
    .action((resource: string, flags: AcquireFlags) =>
      run(async () => (await import('../commands/lease.ts')).acquireLease(context, resource, flags)),
    );
  withAnswer(lease.command('renew'))
    .description('start the time of a lease anew')
    .argument('[lease-id]', id)
    .option('--ttl <duration>', 'how long it lives from now on; default: as it was', duration)
    .addHelpText('after', examples('fencegate lease renew', 'fencegate lease renew --ttl 5m'))
    .action((leaseId: string | undefined, flags: RenewFlags) =>
      run(async () => (await import('../commands/lease.ts')).renewLease(context, leaseId, flags)),
    );
  withAnswer(lease.command('release'))
    .description('end a lease; one that has ended is no error')
    .argument('[lease-id]', id)
    .addHelpText('after', examples('fencegate lease release'))
    .action((leaseId: string | undefined, flags: PlainLeaseFlags) =>
      run(async () => (await import('../commands/lease.ts')).releaseLease(context, leaseId, flags)),
    );
}

function addLocks(lock: Command, context: CommandContext, run: Run): void {
  withAnswer(lock.command('show'))
    .description('who holds a resource, and who waits for it')
    .argument('<resource>', 'VOL/PATH')
    .addHelpText('after', examples('fencegate lock show demo/ledger/q3.csv'))
    .action((resource: string, flags: PlainLeaseFlags) => run(async () => (await import('../commands/lock.ts')).showLock(context, resource, flags)));
  withAnswer(lock.command('list'))
    .description('all current locks; with --json one object a line')
    .option('--volume <name>', 'of one volume')
    .addOption(new Option('--state <state>', 'only those').choices(['held', 'waiting']))
    .option('--older-than <duration>', 'held or waiting for longer', duration)
    .addHelpText('after', examples('fencegate lock list', 'fencegate lock list --volume demo --older-than 5m'))
    .action((flags: ListLocksFlags) => run(async () => (await import('../commands/lock.ts')).listLocks(context, flags)));
  withAnswer(lock.command('break'))
    .description('end somebody else’s lease; fences first; for administrators')
    .argument('<resource>', 'VOL/PATH')
    .requiredOption('--reason <text>', 'why; goes into the audit log')
    .option('--grace <duration>', 'time for the holder to finish; default none', duration)
    .option('--lease <ref...>', 'only these, as lock show names them (LEASE); default: whoever holds it now')
    .addHelpText('after', examples("fencegate lock break demo/ledger/q3.csv --reason 'its host is gone'"))
    .action((resource: string, flags: BreakFlags) => run(async () => (await import('../commands/lock.ts')).breakLock(context, resource, flags)));
}

import type { Command } from 'commander';
import type { CommandContext } from '../command-context.ts';
import type { MoveFlags, ReadFlags, WriteFlags } from '../commands/files.ts';
import { duration, examples, type Run, withAnswer } from './flags.ts';

const INSIDE = '\nInside fencegate exec the lease of the environment is used for its resource.';
const WAIT = 'how long a write without a lease stands in line; default 5s';

export function addFileCommands(program: Command, context: CommandContext, run: Run): void {
  withConditions(withAnswer(program.command('put')))
    .option('--if-none-match <etag>', "'*': only if there is no file yet")
    .description('write a whole file')
    .argument('<local>', 'a local file; - is standard input')
    .argument('<target>', 'VOL/PATH; with a slash at its end, a directory')
    .addHelpText('after', `${INSIDE}\n${examples('fencegate put q3.csv demo/ledger/q3.csv', 'make-report | fencegate put - demo/reports/today.txt')}`)
    .action((local: string, target: string, flags: WriteFlags) =>
      run(async () => (await import('../commands/files.ts')).putFile(context, local, target, flags), 'writes'),
    );
  withAnswer(program.command('get'))
    .description('read a file; a local file is replaced as a whole, a link, device or pipe written into')
    .argument('<resource>', 'VOL/PATH')
    .argument('[local]', 'local file or directory; - is standard output, without --json; default: the same name here')
    .addHelpText('after', examples('fencegate get demo/ledger/2026-q1.csv', 'fencegate get demo/ledger/2026-q1.csv - | head'))
    .action((resource: string, local: string | undefined, flags: ReadFlags) =>
      run(async () => (await import('../commands/files.ts')).getFile(context, resource, local, flags)),
    );
  withAnswer(program.command('ls'))
    .description('list a directory, or the volumes')
    .argument('[directory]', 'VOL/ or VOL/PATH/')
    .addHelpText('after', examples('fencegate ls', 'fencegate ls demo/ledger/', 'fencegate ls demo/ledger/ --json'))
    .action((directory: string | undefined, flags: ReadFlags) =>
      run(async () => (await import('../commands/files.ts')).listDirectory(context, directory, flags)),
    );
  withConditions(withAnswer(program.command('rm')))
    .description('delete a file, or an empty directory (with a slash at its end)')
    .argument('<resource>', 'VOL/PATH')
    .addHelpText('after', `${INSIDE}\n${examples('fencegate rm demo/ledger/old.csv', 'fencegate rm demo/ledger/empty/')}`)
    .action((resource: string, flags: WriteFlags) =>
      run(async () => (await import('../commands/files.ts')).removeFile(context, resource, flags), 'writes'),
    );
  withAnswer(program.command('mv'))
    .description('move a file within its volume')
    .argument('<from>', 'VOL/PATH')
    .argument('<to>', 'VOL/PATH; with a slash at its end, a directory')
    .option('--force', 'replace what is there')
    .option('--wait <duration>', WAIT, duration)
    .addHelpText('after', `${INSIDE}\n${examples('fencegate mv demo/ledger/draft.csv demo/ledger/final.csv')}`)
    .action((from: string, to: string, flags: MoveFlags) =>
      run(async () => (await import('../commands/files.ts')).moveFile(context, from, to, flags), 'writes'),
    );
}

function withConditions(command: Command): Command {
  return command.option('--wait <duration>', WAIT, duration).option('--if-match <etag>', 'only if the file still has this ETag, quotes included');
}

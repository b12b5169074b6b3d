import { Argument, type Command } from 'commander';
import type { CommandContext } from '../command-context.ts';
import { SHELL_NAMES } from '../completion/completion-script.ts';
import { examples, group, JSON_FLAG, type Run } from './flags.ts';

/** The gateway itself, and what needs none that runs. */
export function addGatewayCommands(program: Command, context: CommandContext, run: Run): void {
  program
    .command('serve')
    .description('run the gateway until SIGTERM or SIGINT')
    .addHelpText('after', examples('fencegate serve', 'FENCEGATE_VOLUMES=books=/srv/books fencegate serve'))
    .action(() => run(async () => (await import('../serve.ts')).serve(context.compose, context.host)));
  program
    .command('demo')
    .description('tell in twenty seconds, with a gateway of its own, what a frozen writer cannot do')
    .addHelpText('after', examples('fencegate demo'))
    .action(() => run(async () => (await import('../demo/demo.ts')).demo()));
  group(program, 'config', 'the configuration of the gateway', 'fencegate config check')
    .command('check')
    .description('check the settings as serve would, and show what came of them; opens nothing')
    .option('--json', JSON_FLAG)
    .addHelpText('after', examples('fencegate config check', 'FENCEGATE_CONFIG=fencegate.yaml fencegate config check --json'))
    .action((flags: { json?: boolean }) => run(async () => (await import('../commands/config-check.ts')).checkConfiguration(context, flags)));
  program
    .command('backup')
    .description('copy the journal in FENCEGATE_DATA_DIR to a new file, also while the gateway runs')
    .argument('<file>', 'a file that is not there yet')
    .option('--json', JSON_FLAG)
    .addHelpText('after', examples('FENCEGATE_DATA_DIR=/var/lib/fencegate fencegate backup /backup/journal-$(date +%F).db'))
    .action((file: string, flags: { json?: boolean }) => run(async () => (await import('../commands/backup.ts')).backup(context, file, flags)));
  group(program, 'token', 'bearer tokens', 'fencegate token create')
    .command('create')
    .description('print a new token, and its hash for the principals file')
    .option('--json', JSON_FLAG)
    .addHelpText('after', examples('fencegate token create', 'fencegate token create --json'))
    .action((flags: { json?: boolean }) => run(async () => (await import('../commands/token.ts')).createToken(context, flags)));
  program
    .command('completion')
    .description('print a completion script')
    .addArgument(new Argument('<shell>', 'for which shell').choices(SHELL_NAMES))
    .addHelpText('after', examples('eval "$(fencegate completion bash)"', 'fencegate completion fish | source'))
    .action((shell: string) =>
      run(async () => {
        const { completionScript } = await import('../completion/completion-script.ts');
        context.screen.out(completionScript(shell, program));
        return 0;
      }),
    );
}

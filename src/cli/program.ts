import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { demo } from './demo/demo.ts';
import { EXIT } from './exit-codes.ts';
import { type Compose, type Host, serve } from './serve.ts';
import { createToken } from './token.ts';

/** Runs the command that `argv` (without node and script) names. Resolves with the exit code. */
export async function runProgram(argv: readonly string[], compose: Compose, host: Host): Promise<number> {
  let code: number = EXIT.ok;
  const program = new Command('fencegate')
    .description('A write proxy for file and NFS volumes that checks fencing tokens.')
    .version(version())
    .exitOverride()
    .showSuggestionAfterError()
    .addHelpText('after', '\nSettings come from FENCEGATE_* environment variables; .env.example lists them all.');
  program
    .command('serve')
    .description('run the gateway until SIGTERM or SIGINT')
    .action(async () => {
      code = await serve(compose, host);
    });
  program
    .command('demo')
    .description('tell in twenty seconds, with a gateway of its own, what a frozen writer cannot do')
    .action(async () => {
      code = await demo();
    });
  program
    .command('token')
    .description('bearer tokens')
    .command('create')
    .description('print a new token, and its hash for the principals file')
    .action(() => createToken());
  try {
    if (argv.length === 0) program.outputHelp();
    else await program.parseAsync([...argv], { from: 'user' });
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) throw thrown;
    return thrown.exitCode === 0 ? EXIT.ok : EXIT.usage;
  }
  return code;
}

function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  if (typeof manifest === 'object' && manifest !== null && 'version' in manifest) return String(manifest.version);
  throw new Error('package.json has no version');
}

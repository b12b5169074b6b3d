import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { environmentOfProcess } from '../config/client-environment.ts';
import type { CommandContext } from './command-context.ts';
import { EXIT } from './exit-codes.ts';
import { failureOf } from './failure.ts';
import { screenOfProcess } from './screen.ts';
import type { Compose, Host } from './serve.ts';
import { errorsWritten } from './standard-error.ts';
import { OutputFailed, outputFailed, outputWritten } from './standard-output.ts';
import { addAdministrationCommands } from './trees/administration-tree.ts';
import { addFileCommands } from './trees/files-tree.ts';
import type { Run } from './trees/flags.ts';
import { addGatewayCommands } from './trees/gateway-tree.ts';
import { addLeaseCommands } from './trees/lease-tree.ts';

const AFTER = `
The gateway is set up by FENCEGATE_* variables; .env.example lists them all. The other commands find it by FENCEGATE_URL, or --gateway, and name
themselves by FENCEGATE_AUTH_TOKEN, or FENCEGATE_CERT_FILE and FENCEGATE_KEY_FILE; FENCEGATE_CA_FILE names the authority. A duration is written 30s, 500ms or 5m. Exit codes and examples: docs/command-line.md.`;

/** Runs the command that `argv` (without node and script) names. Resolves with the exit code. What a command needs is loaded when it runs. */
export async function runProgram(argv: readonly string[], compose: Compose, host: Host): Promise<number> {
  const environment = environmentOfProcess();
  const context: CommandContext = {
    environment,
    screen: screenOfProcess(environment),
    host,
    compose,
  };
  const code = await runCommand(argv, context);
  await outputWritten();
  const failed: unknown = outputFailed.reason;
  if (failed instanceof OutputFailed) for (const line of failed.lines) host.complain(line);
  await errorsWritten();
  return failed instanceof OutputFailed ? failed.exitCode : code;
}

async function runCommand(argv: readonly string[], context: CommandContext): Promise<number> {
  let code: number = EXIT.ok;
  let isWrite = false;
  const run: Run = async (command, does) => {
    isWrite = does === 'writes';
    code = await command();
  };
  const program = programOf(context, run);
  try {
    if (argv.length === 0) program.outputHelp();
    else await program.parseAsync([...argv], { from: 'user' });
  } catch (thrown) {
    // Told at the end, as for every command.
    if (thrown instanceof OutputFailed) return thrown.exitCode;
    const failure = failureOf(thrown, isWrite);
    if (failure === null) throw thrown;
    for (const line of failure.lines) context.host.complain(line);
    return failure.exitCode;
  }
  return code;
}

/** The tree of all commands. */
export function programOf(context: CommandContext, run: Run): Command {
  const program = new Command('fencegate')
    .description('A write proxy for file and NFS volumes that checks fencing tokens.')
    .version(version())
    .exitOverride()
    .showSuggestionAfterError()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'fencegate: ')) })
    .showHelpAfterError('(--help tells more)')
    .addHelpText('after', AFTER);
  addGatewayCommands(program, context, run);
  addLeaseCommands(program, context, run);
  addFileCommands(program, context, run);
  addAdministrationCommands(program, context, run);
  return program;
}

function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  if (typeof manifest === 'object' && manifest !== null && 'version' in manifest) return String(manifest.version);
  throw new Error('package.json has no version');
}

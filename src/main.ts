import { leaveDeadTerminals } from './cli/dead-terminals.ts';
import { type EndableProcess, endProcess, endProcessNow } from './cli/ending.ts';
import { runProgram } from './cli/program.ts';
import type { Compose, Host } from './cli/serve.ts';
import { sayOnStandardError } from './cli/standard-error.ts';
import { threadsInside } from './domain/threads-inside.ts';
import { scrub } from './observability/redaction.ts';

const endable: EndableProcess = {
  exit: (code) => {
    leaveDeadTerminals();
    process.exit(code);
  },
  kill: () => process.kill(process.pid, 'SIGKILL'),
  busyWith: () => [...process.getActiveResourcesInfo(), ...threadsInside()],
};

/** The gateway is loaded by the commands that run one: the others start much faster without. */
const compose: Compose = async (config, parts) => (await import('./compose.ts')).compose(config, parts);

const host: Host = {
  complain: (line) => sayOnStandardError(`fencegate: ${scrub(line)}`),
  onSignal: (signal, listener) => process.on(signal, listener),
  onCrash: (listener) => {
    process.on('uncaughtException', listener);
    process.on('unhandledRejection', listener);
  },
  endNow: (code) => endProcessNow(endable, code),
};

await endProcess(endable, await runProgram(process.argv.slice(2), compose, host));

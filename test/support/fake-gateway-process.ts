import { type EndableProcess, endProcess, endProcessNow } from '../../src/cli/ending.ts';
import { runProgram } from '../../src/cli/program.ts';

/**
 * The command line over a gateway that does what `FAKE_GATEWAY` says, run as a process of its own by the tests of signals and
 * exit codes: `ready`, `refuses` (its start fails), `waits` (its start never ends), `answers` (nor does this one, but it listens), `answers and refuses`, `hangs` (its stop never ends), `fails` (cannot go on after a while).
 */
const behaviour = process.env['FAKE_GATEWAY'] ?? 'ready';
const keepAlive = setInterval(() => undefined, 1_000);
const endable: EndableProcess = {
  exit: (code) => process.exit(code),
  kill: () => process.kill(process.pid, 'SIGKILL'),
  busyWith: () => process.getActiveResourcesInfo(),
};

const code = await runProgram(
  process.argv.slice(2),
  async () => ({
    start: async (onWaiting) => {
      if (behaviour.startsWith('answers')) {
        onWaiting?.('http://127.0.0.1:1');
        if (behaviour === 'answers') await new Promise<void>(() => undefined);
      }
      if (behaviour.endsWith('refuses')) throw new Error('the volume demo belongs to another gateway:\n  remove it or adopt it');
      if (behaviour === 'waits') {
        process.stdout.write('starting\n');
        await new Promise<void>(() => undefined);
      }
      return { url: 'http://127.0.0.1:1' };
    },
    stop: () => {
      process.stdout.write('stopping in order\n');
      return behaviour === 'hangs' ? new Promise<void>(() => undefined) : Promise.resolve();
    },
    ...(behaviour === 'fails' ? { failed: Promise.resolve(new Error('another process took over')) } : {}),
  }),
  {
    complain: (line) => process.stderr.write(`fencegate: ${line}\n`),
    onSignal: (signal, listener) => process.on(signal, listener),
    onCrash: (listener) => process.on('uncaughtException', listener),
    endNow: (exitCode) => endProcessNow(endable, exitCode),
  },
);
clearInterval(keepAlive);
await endProcess(endable, code);

/**
 * The gateway as a process of its own that a test can hold at the numbered steps of the write protocol. Bundled by `child-bundle.ts`;
 * started by `gateway-process.ts`, which talks to it over the IPC channel and hands it the settings below.
 */
import childProcess from 'node:child_process';
import callFs from 'node:fs';
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { basename } from 'node:path';
import type { LIMITS } from '../../src/domain/limits.ts';
import type { Step, Steps } from '../../src/domain/steps.ts';

export interface ChildSettings {
  /** Below what the configuration allows, so that a test need not wait for long. */
  readonly takeoverAfterMs: number | null;
  /** The same of the session with the ensemble. */
  readonly zookeeperSessionMs: number | null;
  /** Directories that pass for an NFS mount: its calls may hang, so none of them is made on the main thread. */
  readonly asNetwork: readonly string[];
  /** Bounds of the product that are shorter here, so that a test of what happens behind a deadline need not wait for the real one. */
  readonly limits: Readonly<Partial<Record<keyof typeof LIMITS, number>>>;
}

/** A step of a write, or the moment before a new incarnation makes its directory on a volume. */
export type HoldPoint = Step | 'own_directory';

/** From the test: from now on every write that reaches `step` waits there, and those that wait already go on waiting; `null` lets all go on. */
export interface HoldOrder {
  readonly hold: HoldPoint | null;
}

export type ChildReport =
  | { readonly kind: 'listening' | 'waiting'; readonly url: string }
  | { readonly kind: 'ordered' }
  | { readonly kind: 'spawned' }
  | { readonly kind: 'reached'; readonly step: HoldPoint; readonly operationId: string };

const [settingsText = '{}'] = process.argv.slice(2);
const settings = JSON.parse(settingsText) as ChildSettings;

const report = (message: ChildReport): void => void process.send?.(message);

let held: HoldPoint | null = null;
let letGo: () => void = () => undefined;
let gate = Promise.resolve();

process.on('message', ({ hold }: HoldOrder) => {
  if (hold === null) {
    letGo();
    letGo = () => undefined;
  } else if (held === null) {
    gate = new Promise((resolve) => {
      letGo = resolve;
    });
  }
  held = hold;
  report({ kind: 'ordered' });
});
// A test that is gone wants nothing any more.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));

function reached(step: HoldPoint, operationId: string): Promise<void> | undefined {
  if (step !== held) return undefined;
  report({ kind: 'reached', step, operationId });
  return gate;
}
const steps: Steps = { reached };

const { mkdir } = callFs;
const mkdirOnOrder = (path: string, ...rest: [never, never]): void => {
  const name = basename(path);
  const wait = /^[0-9a-f]{32}$/.test(name) ? reached('own_directory', name) : undefined;
  if (wait === undefined) mkdir(path, ...rest);
  else void wait.then(() => mkdir(path, ...rest));
};
Object.assign(callFs, { mkdir: mkdirOnOrder });

const NFS = 0x6969n;
const { statfs } = fs;
Object.assign(fs, {
  statfs: async (path: string, options: { bigint: true }) => {
    const found = await statfs(path, options);
    return settings.asNetwork.includes(path) ? Object.assign(found, { type: NFS }) : found;
  },
});
for (const name of ['spawn', 'spawnSync', 'fork', 'exec', 'execSync', 'execFile', 'execFileSync'] as const) {
  const make = childProcess[name] as (...args: unknown[]) => unknown;
  const reporting = (...args: unknown[]): unknown => {
    report({ kind: 'spawned' });
    return make(...args);
  };
  Object.assign(childProcess, { [name]: reporting });
}
syncBuiltinESMExports();

// Before any module reads them.
Object.assign((await import('../../src/domain/limits.ts')).LIMITS, settings.limits);
const { compose } = await import('../../src/compose.ts');
const { serve } = await import('../../src/cli/serve.ts');
const { endProcess, endProcessNow } = await import('../../src/cli/ending.ts');
const { threadsInside } = await import('../../src/domain/threads-inside.ts');

const endable = {
  exit: (code: number) => process.exit(code),
  kill: () => void process.kill(process.pid, 'SIGKILL'),
  busyWith: () => [...process.getActiveResourcesInfo(), ...threadsInside()],
};

const code = await serve(
  async (config, parts) => {
    const { zookeeper } = config;
    const shortened = {
      ...config,
      takeoverAfterMs: settings.takeoverAfterMs ?? config.takeoverAfterMs,
      zookeeper: zookeeper === null ? null : { ...zookeeper, sessionMs: settings.zookeeperSessionMs ?? zookeeper.sessionMs },
    };
    const gateway = await compose(shortened, parts, { steps });
    const start: typeof gateway.start = async (onWaiting) => {
      const started = await gateway.start((url) => {
        report({ kind: 'waiting', url });
        onWaiting?.(url);
      });
      report({ kind: 'listening', ...started });
      return started;
    };
    return { ...gateway, start };
  },
  {
    complain: (line) => process.stderr.write(`fencegate: ${line}\n`),
    onSignal: (signal, listener) => process.on(signal, listener),
    onCrash: (listener) => {
      process.on('uncaughtException', listener);
      process.on('unhandledRejection', listener);
    },
    endNow: (ended) => endProcessNow(endable, ended),
  },
);
process.removeAllListeners('disconnect');
await endProcess(endable, code);

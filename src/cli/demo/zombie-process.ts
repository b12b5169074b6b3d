import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { extname } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** What writer A tells its parent, one JSON object per line. */
export type ZombieEvent =
  | { readonly event: 'held'; readonly fencingToken: string }
  | { readonly event: 'answered'; readonly status: number; readonly code: string; readonly bodyBytes: number; readonly bytesSent: number };

type Held = Extract<ZombieEvent, { event: 'held' }>;
type Answered = Extract<ZombieEvent, { event: 'answered' }>;

export interface ZombieTask {
  readonly url: string;
  readonly resource: string;
  readonly ttlMs: number;
}

export interface Zombie {
  readonly pid: number;
  readonly held: Promise<Held>;
  readonly result: Promise<Answered>;
  /** SIGSTOP: the process stands still, its sockets stay open. */
  freeze(): void;
  wake(): void;
  end(): Promise<void>;
}

const SCRIPT = fileURLToPath(new URL(`./zombie${extname(import.meta.url)}`, import.meta.url));

/** Starts writer A as a process of its own, so that it can really be frozen. */
export function startZombie(task: ZombieTask): Zombie {
  const child = spawn(process.execPath, [...process.execArgv, SCRIPT, JSON.stringify(task)], { env: {}, stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const events = createInterface({ input: child.stdout });
  const held = nextEvent<Held>(events, 'held');
  const result = nextEvent<Answered>(events, 'answered');
  // Whoever waits for `held` sees the failure; this promise must not be the one that ends the process.
  result.catch(() => undefined);
  return {
    pid: child.pid ?? 0,
    held,
    result,
    freeze: () => void child.kill('SIGSTOP'),
    wake: () => void child.kill('SIGCONT'),
    end: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await exited;
    },
  };
}

function nextEvent<E extends ZombieEvent>(lines: Interface, name: E['event']): Promise<E> {
  return new Promise((resolve, reject) => {
    lines.on('line', (line) => {
      const event = JSON.parse(line) as ZombieEvent;
      if (event.event === name) resolve(event as E);
    });
    lines.on('close', () => reject(new Error('writer A ended before its story was told')));
  });
}

import { type ChildProcess, fork } from 'node:child_process';
import { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { FromSupervisor, ToSupervisor } from './child-protocol.ts';

const STOP_MS = 2_000;

export interface SupervisionListeners {
  /** A fresh child, before anything was said. The one before it was seen to exit. */
  readonly onChild: (socket: Socket, pid: number) => void;
  readonly onSaid: (line: string) => void;
  /** Without the supervisor no child will ever come again. */
  readonly onFailure: (error: Error) => void;
}

/** The gateway's end of the supervisor. Made before any volume is opened. */
export class Supervision {
  readonly #supervisor: ChildProcess;
  #stopping = false;

  constructor({ onChild, onSaid, onFailure }: SupervisionListeners) {
    this.#supervisor = fork(compiled('supervisor-process'), [], { execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    this.#supervisor.on('message', (message: FromSupervisor, handle) => {
      if (message.kind === 'child' && handle instanceof Socket) onChild(handle, message.pid);
      else if (message.kind === 'said') onSaid(message.line);
      else if (message.kind === 'exited' && !this.#stopping) onSaid(`the client process ended (${message.signal ?? message.code ?? 'unknown'})`);
    });
    this.#supervisor.once('error', onFailure);
    this.#supervisor.once('exit', (code, signal) => {
      if (!this.#stopping) onFailure(new Error(`the supervisor of the ZooKeeper client ended (${signal ?? code ?? 'unknown'})`));
    });
  }

  get pid(): number {
    return this.#supervisor.pid ?? 0;
  }

  /** Ends the child; the next one comes when it was seen to exit. */
  replace(): void {
    if (this.#supervisor.connected) this.#supervisor.send({ kind: 'replace' } satisfies ToSupervisor);
  }

  /** Resolves when the supervisor, and with it the child, is gone. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const { exitCode, signalCode } = this.#supervisor;
    if (exitCode !== null || signalCode !== null) return;
    const gone = new Promise<void>((resolve) => this.#supervisor.once('exit', () => resolve()));
    const late = setTimeout(() => this.#supervisor.kill('SIGKILL'), STOP_MS);
    if (this.#supervisor.connected) this.#supervisor.disconnect();
    await gone;
    clearTimeout(late);
  }
}

/** The processes run compiled code. When this module is run from its source (tests), that is the build beside it. */
function compiled(name: string): string {
  const path = fileURLToPath(new URL(`./${name}.js`, import.meta.url));
  return import.meta.url.endsWith('.ts') ? path.replace('/src/zookeeper/', '/dist/zookeeper/') : path;
}

import type { Socket } from 'node:net';
import type { Clock } from '../domain/clock.ts';
import type { ZkClient, ZkSession } from '../locks/zookeeper/zk-client.ts';
import type { FromChild, ToChild } from './child-protocol.ts';
import type { ZkServer } from './connect-string.ts';
import { LineChannel } from './line-channel.ts';
import { NativeLines } from './native-lines.ts';
import { ProcessZkClient } from './process-zk-client.ts';
import { Supervision } from './supervision.ts';

export interface EnsembleSettings {
  readonly servers: readonly ZkServer[];
  readonly chroot: string;
  readonly sessionMs: number;
  /** `user:password`. */
  readonly auth: string | null;
  readonly clock: Clock;
  readonly log: (line: string) => void;
}

const START_MS = 30_000;

/** The ensemble of a gateway: one child process, one session at a time. */
export class Ensemble {
  readonly #settings: EnsembleSettings;
  readonly #supervision: Supervision;
  readonly #failureListeners: ((error: Error) => void)[] = [];
  #line: LineChannel<ToChild, FromChild> | null = null;
  #ready = false;
  /** The child has, or had, a session. */
  #used = false;
  #client: ProcessZkClient | null = null;
  #onFirst: (problem: Error | null) => void = () => undefined;
  #childPid = 0;

  /** Resolves when the native client is loaded; no server need be there. Rejects with one line when it cannot be loaded. */
  static async start(settings: EnsembleSettings): Promise<Ensemble> {
    const ensemble = new Ensemble(settings);
    const problem = await ensemble.#first();
    if (problem === null) return ensemble;
    await ensemble.stop();
    throw problem;
  }

  private constructor(settings: EnsembleSettings) {
    this.#settings = settings;
    const native = new NativeLines(settings.clock, settings.log);
    this.#supervision = new Supervision({
      onChild: (socket, pid) => this.#greet(socket, pid),
      onSaid: (line) => native.write(line),
      onFailure: (error) => this.#fail(error),
    });
  }

  /** Of the child process there is now. */
  get childPid(): number {
    return this.#childPid;
  }

  get supervisorPid(): number {
    return this.#supervision.pid;
  }

  /** Called when no session will ever come again: the gateway cannot go on. */
  onFailure(listener: (error: Error) => void): void {
    this.#failureListeners.push(listener);
  }

  /** A new session, or an earlier one that is resumed. Ends the client that was made before. */
  open(resume: ZkSession | null = null): ZkClient {
    this.#client?.end();
    const { servers, chroot, sessionMs, auth, clock } = this.#settings;
    const client = new ProcessZkClient({
      order: { servers, chroot, sessionMs, auth, resume },
      clock,
      onHung: () => this.#supervision.replace(),
    });
    this.#client = client;
    if (this.#used) {
      // Nothing of the earlier session is heard any more.
      this.#line = null;
      this.#ready = false;
      this.#supervision.replace();
    } else this.#attach();
    return client;
  }

  /** Ends the session if it is open, and the processes. */
  async stop(): Promise<void> {
    await this.#client?.close();
    await this.#supervision.stop();
  }

  #greet(socket: Socket, pid: number): void {
    this.#childPid = pid;
    this.#used = false;
    const line = new LineChannel<ToChild, FromChild>(socket, {
      onMessage: (message) => this.#receive(line, message),
      onClose: () => this.#gone(line),
    });
    this.#line = line;
    line.send({ kind: 'hello' });
  }

  #receive(line: LineChannel<ToChild, FromChild>, message: FromChild): void {
    if (line !== this.#line) return;
    if (message.kind === 'said') this.#settings.log(message.line);
    else if (message.kind === 'ready') {
      this.#ready = true;
      this.#onFirst(null);
      this.#attach();
    } else if (message.kind === 'cannot') this.#onFirst(missing(message.detail));
    else this.#client?.receive(message);
  }

  #attach(): void {
    if (!this.#ready || this.#line === null || this.#client === null || this.#client.state === 'over') return;
    this.#used = true;
    this.#client.attach(this.#line);
  }

  #gone(line: LineChannel<ToChild, FromChild>): void {
    if (line !== this.#line) return;
    this.#line = null;
    this.#ready = false;
    this.#client?.detach();
  }

  #fail(error: Error): void {
    this.#onFirst(error);
    this.#line?.close();
    for (const listener of this.#failureListeners) listener(error);
  }

  #first(): Promise<Error | null> {
    return new Promise((resolve) => {
      const late = this.#settings.clock.after(START_MS, () => resolve(new Error('the process of the ZooKeeper client did not start in time')));
      this.#onFirst = (problem) => {
        late.cancel();
        resolve(problem);
      };
    });
  }
}

function missing(detail: string): Error {
  return new Error(
    `FENCEGATE_COORDINATOR=zookeeper needs the npm package zookeeper, which cannot be loaded here; install it with: npm install zookeeper (${detail})`,
  );
}

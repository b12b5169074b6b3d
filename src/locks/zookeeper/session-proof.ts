import type { Clock, Timer } from '../../domain/clock.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Contact } from './contact.ts';
import { type ZkClient, ZkError } from './zk-client.ts';

const NOTHING = new Uint8Array();
const PROOFS_PER_SESSION = 10;

/** Proves the session again and again, by committed sets of the own ephemeral node. */
export class SessionProof {
  readonly #clock: Clock;
  readonly #client: ZkClient;
  readonly #path: string;
  readonly #contact: Contact;
  readonly #everyMs: number;
  #version: number | null = 0;
  #timer: Timer | null = null;
  #running = false;
  /** The connection came back while a proof was tried over the one before. */
  #again = false;
  #stopped = false;

  constructor(options: {
    readonly clock: Clock;
    readonly client: ZkClient;
    readonly path: string;
    readonly contact: Contact;
    readonly sessionMs: number;
  }) {
    this.#clock = options.clock;
    this.#client = options.client;
    this.#path = options.path;
    this.#contact = options.contact;
    this.#everyMs = options.sessionMs / PROOFS_PER_SESSION;
    this.#arm();
  }

  /** At once, because the connection came back. */
  now(): void {
    if (this.#running) this.#again = true;
    else if (!this.#stopped) void this.#prove();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  async #prove(): Promise<void> {
    this.#running = true;
    this.#timer?.cancel();
    let proven = false;
    try {
      // Reads prove nothing: this one only finds the version after a lost reply.
      this.#version ??= (await this.#client.get(this.#path)).stat.version;
      const sentMs = this.#clock.monotonicMs();
      const version = this.#version;
      this.#version = null;
      this.#version = (await this.#client.set(this.#path, NOTHING, version)).stat.version;
      proven = true;
      if (!this.#stopped) this.#contact.proven(sentMs);
    } catch (thrown) {
      const gone = thrown instanceof ZkError && (thrown.failure === 'session_over' || thrown.failure === 'no_node');
      // Its node is gone, so the session is: there is nothing left to prove.
      if (gone && !this.#stopped) this.#contact.lose();
    }
    this.#running = false;
    const again = this.#again;
    this.#again = false;
    if (again) this.now();
    // A follower may not have heard of the set whose answer was lost, and tell an older version: it will in a moment.
    else if (!this.#stopped) this.#arm(proven || this.#client.state !== 'connected' ? this.#everyMs : LIMITS.zookeeperRetryMs);
  }

  #arm(afterMs = this.#everyMs): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.after(afterMs, () => this.now());
  }
}

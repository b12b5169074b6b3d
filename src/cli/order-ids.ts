import { randomUUID } from 'node:crypto';
import { Interrupted } from './interruptible.ts';

/** The request ids of one command: all its orders have the same, so that one look finds what became of them. */
export class OrderIds {
  readonly #id = randomUUID();
  readonly #sent = new Set<string>();

  /** For the client: the id of the next request. */
  readonly next = (method: string): string => {
    if (method === 'GET') return randomUUID();
    this.#sent.add(method);
    return this.#id;
  };

  /** What `thrown` is when an order was under way, or one with `method`: an interruption then knows its id. */
  interrupted(thrown: unknown, method?: string): unknown {
    const isSent = method === undefined ? this.#sent.size > 0 : this.#sent.has(method);
    return thrown instanceof Interrupted && isSent ? thrown.during(this.#id) : thrown;
  }
}

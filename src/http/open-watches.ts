import type { ServerResponse } from 'node:http';
import { refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';

/** How many event streams are open: each holds a connection and a place at the source of events for as long as the client likes. */
export class OpenWatches {
  #count = 0;

  /** Throws `overloaded`. The place is given back when the answer ends. */
  open(response: ServerResponse): void {
    if (this.#count >= LIMITS.watchesMax) throw refuse('overloaded', `${LIMITS.watchesMax} watches are already open.`);
    this.#count += 1;
    response.once('close', () => {
      this.#count -= 1;
    });
  }
}

import type { ServerResponse } from 'node:http';
import { refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import type { WatchScope } from '../domain/lock-events.ts';

/**
 * How many event streams are open: each holds a connection and a place at the source of events for as long as the client likes. Those of
 * sessions, which a client opens by itself, leave the places of people who look at locks alone.
 */
export class OpenWatches {
  #ofSessions = 0;
  #ofLocks = 0;

  /** Throws `overloaded`. The place is given back when the answer ends. */
  open(response: ServerResponse, scope: WatchScope): void {
    const ofSession = scope.of === 'session';
    if ((ofSession ? this.#ofSessions : this.#ofLocks) >= LIMITS.watchesMax)
      throw refuse('overloaded', `${LIMITS.watchesMax} watches are already open.`);
    const count = (change: number): void => {
      if (ofSession) this.#ofSessions += change;
      else this.#ofLocks += change;
    };
    count(1);
    response.once('close', () => count(-1));
  }
}

import { Connection, type Exchange } from './connection.ts';
import type { LoadPlan, LoadResult } from './plan.ts';
import { Timed } from './timed.ts';

/**
 * Runs a load to its end. @throws Error at the first answer with a status that the plan does not name.
 * Closed loop: each connection waits for its answer, so a slow server also gets fewer requests, the same for all peers.
 */
export async function runLoad(plan: LoadPlan): Promise<LoadResult> {
  const connections = plan.requests.map((request) => new Connection(plan.port, request));
  try {
    await Promise.all(connections.map((connection) => connection.open()));
    return await new Load(plan).run(connections);
  } finally {
    for (const connection of connections) connection.close();
  }
}

class Load {
  readonly #plan: LoadPlan;
  readonly #timed: Timed;
  #bodyBytesSent = 0;

  constructor(plan: LoadPlan) {
    this.#plan = plan;
    this.#timed = new Timed(plan.amount);
  }

  async run(connections: readonly Connection[]): Promise<LoadResult> {
    await Promise.all(connections.map((connection) => this.#repeat(connection)));
    return this.#timed.result(this.#bodyBytesSent);
  }

  #repeat(connection: Connection): Promise<void> {
    return new Promise((resolve, reject) => {
      let sentMs = performance.now();
      let left = this.#timed.repeatsMax;
      const settle = (outcome: Exchange | Error): void => {
        const nowMs = performance.now();
        const problem = this.#problemOf(outcome);
        if (outcome instanceof Error || problem !== null) {
          reject(problem);
          return;
        }
        this.#bodyBytesSent += outcome.bodyBytesSent;
        this.#timed.count(sentMs, nowMs);
        left -= 1;
        if (left <= 0 || nowMs >= this.#timed.untilMs) {
          resolve();
          return;
        }
        sentMs = nowMs;
        connection.send(settle);
      };
      connection.send(settle);
    });
  }

  #problemOf(outcome: Exchange | Error): Error | null {
    if (outcome instanceof Error) return outcome;
    if (this.#plan.statuses.includes(outcome.status)) return null;
    return new Error(`answered ${outcome.status} where ${this.#plan.statuses.join(' or ')} was due`);
  }
}

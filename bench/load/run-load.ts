import { Connection, type Exchange } from './connection.ts';
import { Latencies } from './latencies.ts';
import type { LoadPlan, LoadResult } from './plan.ts';

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
  readonly #latencies = new Latencies();
  readonly #startMs = performance.now();
  readonly #measureFromMs: number;
  readonly #measureToMs: number;
  readonly #requestsMax: number;
  #requestsAll = 0;
  #bodyBytesSent = 0;
  #lastMs = 0;

  constructor(plan: LoadPlan) {
    this.#plan = plan;
    const { amount } = plan;
    const timed = 'measureMs' in amount;
    this.#measureFromMs = this.#startMs + (timed ? amount.warmUpMs : 0);
    this.#measureToMs = timed ? this.#measureFromMs + amount.measureMs : Number.POSITIVE_INFINITY;
    this.#requestsMax = timed ? Number.POSITIVE_INFINITY : amount.requestsPerConnection;
  }

  async run(connections: readonly Connection[]): Promise<LoadResult> {
    const before = process.cpuUsage();
    await Promise.all(connections.map((connection) => this.#repeat(connection)));
    const used = process.cpuUsage(before);
    const endMs = performance.now();
    const seconds = (Number.isFinite(this.#measureToMs) ? this.#measureToMs - this.#measureFromMs : this.#lastMs - this.#startMs) / 1000;
    const [p50Ms, p99Ms] = this.#latencies.percentiles([0.5, 0.99]);
    return {
      requests: this.#latencies.count,
      seconds,
      p50Ms,
      p99Ms,
      requestsAll: this.#requestsAll,
      bodyBytesSent: this.#bodyBytesSent,
      driverCpuShare: (used.user + used.system) / 1000 / (endMs - this.#startMs),
    };
  }

  #repeat(connection: Connection): Promise<void> {
    return new Promise((resolve, reject) => {
      let sentMs = performance.now();
      let requestsLeft = this.#requestsMax;
      const settle = (outcome: Exchange | Error): void => {
        const nowMs = performance.now();
        if (outcome instanceof Error) return reject(outcome);
        if (!this.#plan.statuses.includes(outcome.status)) return reject(new Error(`answered ${outcome.status} where ${this.#plan.statuses.join(' or ')} was due`));
        this.#count(outcome, sentMs, nowMs);
        requestsLeft -= 1;
        if (requestsLeft <= 0 || nowMs >= this.#measureToMs) return resolve();
        sentMs = nowMs;
        connection.send(settle);
      };
      connection.send(settle);
    });
  }

  #count(exchange: Exchange, sentMs: number, nowMs: number): void {
    this.#requestsAll += 1;
    this.#bodyBytesSent += exchange.bodyBytesSent;
    this.#lastMs = nowMs;
    if (nowMs >= this.#measureFromMs && nowMs < this.#measureToMs) this.#latencies.add(nowMs - sentMs);
  }
}

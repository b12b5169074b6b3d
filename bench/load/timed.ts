import { Latencies } from './latencies.ts';
import type { Amount, LoadResult } from './plan.ts';

/** Counts what ends inside the measured time. */
export class Timed {
  readonly #latencies = new Latencies();
  readonly #before = process.cpuUsage();
  readonly #startMs = performance.now();
  readonly #fromMs: number;
  readonly untilMs: number;
  readonly repeatsMax: number;
  #all = 0;
  #lastMs = 0;

  constructor(amount: Amount) {
    const timed = 'measureMs' in amount;
    this.#fromMs = this.#startMs + (timed ? amount.warmUpMs : 0);
    this.untilMs = timed ? this.#fromMs + amount.measureMs : Number.POSITIVE_INFINITY;
    this.repeatsMax = timed ? Number.POSITIVE_INFINITY : amount.requestsPerConnection;
  }

  /** @param doneMs the end of what latencies are of, when that is only a part. */
  count(fromMs: number, toMs: number, doneMs = toMs): void {
    this.#all += 1;
    this.#lastMs = toMs;
    if (toMs >= this.#fromMs && toMs < this.untilMs) this.#latencies.add(doneMs - fromMs);
  }

  result(bodyBytesSent = 0): LoadResult {
    const used = process.cpuUsage(this.#before);
    const elapsedMs = performance.now() - this.#startMs;
    const [p50Ms, p99Ms] = this.#latencies.percentiles([0.5, 0.99]);
    return {
      requests: this.#latencies.count,
      seconds: (Number.isFinite(this.untilMs) ? this.untilMs - this.#fromMs : this.#lastMs - this.#startMs) / 1000,
      p50Ms,
      p99Ms,
      requestsAll: this.#all,
      bodyBytesSent,
      driverCpuShare: (used.user + used.system) / 1000 / elapsedMs,
    };
  }
}

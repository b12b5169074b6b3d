import { setTimeout as delay } from 'node:timers/promises';
import type { HandOverPlan } from './cycle-plan.ts';
import { leaseIdOf } from './cycles/fencegate-lease.ts';
import { HttpClient } from './cycles/http-client.ts';
import type { LoadResult } from './plan.ts';
import { Timed } from './timed.ts';

/** How long a request of a waiter waits; then it polls, and keeps its place. */
const WAIT_MS = 60_000;
const TTL_MS = 3_600_000;
const LINE_MS_MAX = 120_000;
const LOOK_AGAIN_MS = 50;

/** @throws Error when an answer was not due, or a release woke nobody. */
export async function runHandOver(plan: HandOverPlan): Promise<LoadResult> {
  const clients = Array.from({ length: plan.waiters + 1 }, () => new HttpClient(plan.port));
  const chain = new Chain(plan);
  try {
    const turns = clients.map((client) => chain.takePart(client));
    // An answer that fails ends the load at once, wherever it waits.
    const failed = Promise.race(turns).then(() => new Promise<never>(() => undefined));
    await Promise.race([chain.lineStands(), failed]);
    const timed = new Timed(plan.amount);
    chain.begin(timed);
    await Promise.race([delay(plan.amount.warmUpMs + plan.amount.measureMs), failed]);
    chain.end();
    const result = timed.result();
    // Whoever still waits takes its turn and leaves, so that the next load finds the name free.
    await Promise.all(turns);
    // Those who came before the measured time and left after it worked as well: CPU time and flushes are by turn, of all of them.
    return { ...result, requestsAll: chain.turns };
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

class Chain {
  readonly #plan: HandOverPlan;
  readonly #body: string;
  readonly #begun: Promise<Timed>;
  #begin: (timed: Timed) => void = () => undefined;
  #releasedMs: number | null = null;
  #over = false;
  #turns = 0;

  constructor(plan: HandOverPlan) {
    this.#plan = plan;
    this.#body = JSON.stringify({ resource: plan.resource, ttl_ms: TTL_MS, wait_ms: WAIT_MS, client_id: 'bench' });
    this.#begun = new Promise((resolve) => {
      this.#begin = resolve;
    });
  }

  /** How often somebody stood in line, was granted and released. */
  get turns(): number {
    return this.#turns;
  }

  begin(timed: Timed): void {
    this.#begin(timed);
  }

  end(): void {
    this.#over = true;
  }

  async lineStands(): Promise<void> {
    const look = new HttpClient(this.#plan.port);
    try {
      for (const untilMs = performance.now() + LINE_MS_MAX; performance.now() < untilMs; await delay(LOOK_AGAIN_MS)) {
        const { text } = await look.send('GET', `/v1/locks/${this.#plan.resource}`, [200]);
        if (Number(/"queue_length":(\d+)/.exec(text)?.[1]) === this.#plan.waiters) return;
      }
    } finally {
      await look.close();
    }
    throw new Error(`the line did not reach ${this.#plan.waiters} waiters`);
  }

  async takePart(client: HttpClient): Promise<void> {
    while (!this.#over) {
      const leaseId = await this.#held(client);
      const nowMs = performance.now();
      const timed = await this.#begun;
      if (this.#releasedMs !== null && !this.#over) timed.count(this.#releasedMs, nowMs);
      this.#releasedMs = performance.now();
      await client.send('DELETE', `/v1/leases/${leaseId}`, [204]);
      this.#turns += 1;
    }
  }

  async #held(client: HttpClient): Promise<string> {
    let answer = await client.send('POST', '/v1/leases', [201, 202], this.#body, { 'content-type': 'application/json' });
    const leaseId = leaseIdOf(answer.text);
    while (!answer.text.includes('"state":"held"')) answer = await client.send('GET', `/v1/leases/${leaseId}?wait_ms=${WAIT_MS}`, [200]);
    return leaseId;
  }
}

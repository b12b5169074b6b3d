import { setTimeout as delay } from 'node:timers/promises';
import type { HeartbeatPlan } from './cycle-plan.ts';
import { HttpClient } from './cycles/http-client.ts';
import type { LoadResult } from './plan.ts';
import { Timed } from './timed.ts';

const MAKERS = 64;
const BEATERS = 4;
/** Long enough for the making of all of them; a heartbeat that is missed is seen by its answer, not by an end. */
const TTL_MS = 600_000;

const made = new Map<string, Promise<readonly string[]>>();

/**
 * Beats are sent when they are due, whether or not earlier ones were answered: a server that falls behind is not waited for.
 * @throws Error when a session was not renewed, or its answer came later than the next beat was due.
 */
export async function runHeartbeats(plan: HeartbeatPlan): Promise<LoadResult> {
  const key = `${plan.port} ${plan.leases}`;
  const sessions = made.get(key) ?? makeSessions(plan);
  made.set(key, sessions);
  const batches = inBatches(await sessions, plan.batch);
  const clients = Array.from({ length: BEATERS }, () => new HttpClient(plan.port));
  try {
    // A first beat for each, so that what is measured is a steady state.
    await beat(plan, clients, batches, new Timed({ requestsPerConnection: 1 }), 1);
    const timed = new Timed({ warmUpMs: 0, measureMs: plan.measureMs });
    await beat(plan, clients, batches, timed, Math.round(plan.measureMs / plan.everyMs));
    return timed.result();
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

async function beat(plan: HeartbeatPlan, clients: readonly HttpClient[], batches: readonly string[], timed: Timed, times: number): Promise<void> {
  const startMs = performance.now();
  const apartMs = plan.everyMs / batches.length;
  const lanes = clients.map(async (client, lane) => {
    for (let turn = lane; turn < batches.length * times; turn += clients.length) {
      const dueMs = startMs + turn * apartMs;
      const earlyMs = dueMs - performance.now();
      if (earlyMs > 0) await delay(earlyMs);
      await renew(client, batches[turn % batches.length] ?? '', plan.batch);
      const nowMs = performance.now();
      if (nowMs - dueMs > plan.everyMs) throw new Error(`a heartbeat was answered ${Math.round(nowMs - dueMs)} ms after it was due`);
      timed.count(dueMs, nowMs);
    }
  });
  await Promise.all(lanes);
}

async function renew(client: HttpClient, body: string, sessions: number): Promise<void> {
  const { text } = await client.send('POST', '/v1/sessions/heartbeats', [200], body, { 'content-type': 'application/json' });
  const renewed = text.split('"code":null').length - 1;
  if (renewed !== sessions) throw new Error(`${sessions - renewed} of ${sessions} sessions were not renewed`);
}

function inBatches(sessions: readonly string[], size: number): readonly string[] {
  return Array.from({ length: sessions.length / size }, (_, index) =>
    JSON.stringify({ session_ids: sessions.slice(index * size, (index + 1) * size) }),
  );
}

async function makeSessions(plan: HeartbeatPlan): Promise<readonly string[]> {
  const sessions: string[] = [];
  let next = 0;
  const maker = async (): Promise<void> => {
    const client = new HttpClient(plan.port);
    try {
      for (let index = next++; index < plan.leases; index = next++) {
        const { session_id: session } = await client.json('POST', '/v1/leases', [201], {
          resource: `${plan.volume}/live-${index}`,
          ttl_ms: TTL_MS,
          client_id: 'bench',
        });
        sessions.push(String(session));
      }
    } finally {
      await client.close();
    }
  };
  await Promise.all(Array.from({ length: MAKERS }, maker));
  return sessions;
}

import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createTcpServer, type Server as TcpServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { Cycle } from '../../../bench/load/cycle-plan.ts';
import { cycleClient } from '../../../bench/load/cycles/cycle-client.ts';
import { runCycles } from '../../../bench/load/run-cycles.ts';
import { runHandOver } from '../../../bench/load/run-hand-over.ts';
import { runHeartbeats } from '../../../bench/load/run-heartbeats.ts';
import { Timed } from '../../../bench/load/timed.ts';

type Answer = { readonly status: number; readonly body?: object; readonly headers?: Readonly<Record<string, string>> };

const servers: (Server | TcpServer)[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) {
    if ('closeAllConnections' in server) server.closeAllConnections();
    server.close();
  }
});

async function portOf(server: Server | TcpServer): Promise<number> {
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

/** Answers each request with what `answer` says, and notes method and path. */
async function serving(answer: (request: IncomingMessage, body: string) => Answer | Promise<Answer>): Promise<{ port: number; seen: string[] }> {
  const seen: string[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('latin1')) body += String(chunk);
    seen.push(`${request.method} ${request.url}`);
    const { status, body: told, headers = {} } = await answer(request, body);
    response.writeHead(status, headers).end(told === undefined ? undefined : JSON.stringify(told));
  });
  return { port: await portOf(server), seen };
}

const twice = (port: number, cycle: Cycle, clients = 1) => runCycles({ plan: 'cycles', port, clients, cycle, amount: { requestsPerConnection: 2 } });

describe('a cycle', () => {
  it('of the gateway takes a lease on a name of its own and releases that one', async () => {
    const { port, seen } = await serving(({ method }) =>
      method === 'POST' ? { status: 201, body: { lease_id: 'l1.x', state: 'held' } } : { status: 204 },
    );
    expect(await twice(port, { kind: 'fencegate-lease', volume: 'v' })).toMatchObject({ requests: 2, requestsAll: 2 });
    expect(seen).toEqual(['POST /v1/leases', 'DELETE /v1/leases/l1.x', 'POST /v1/leases', 'DELETE /v1/leases/l1.x']);
  });

  it('of the gateway takes, where names are to be new, one that was never seen each time', async () => {
    const resources = new Set<string>();
    const { port } = await serving(({ method }, body) => {
      if (method !== 'POST') return { status: 204 };
      resources.add((JSON.parse(body) as { resource: string }).resource);
      return { status: 201, body: { lease_id: `l${resources.size}` } };
    });
    for (let run = 0; run < 2; run += 1) await twice(port, { kind: 'fencegate-lease', volume: 'v', names: 'new' }, 3);
    expect(resources.size).toBe(12);
  });

  it('of which only the taking is timed has latencies without the release', async () => {
    let releasedMs = 0;
    const { port } = await serving(({ method }) => {
      if (method === 'POST') return { status: 201, body: { lease_id: 'l1' } };
      releasedMs = performance.now();
      return { status: 204 };
    });
    const cycle = { kind: 'fencegate-lease', volume: 'v' } as const;
    const [whole, taking] = [await cycleClient(port, cycle, 0), await cycleClient(port, { ...cycle, timed: 'acquire' }, 1)];
    expect(await whole.run()).toBeNull();
    expect(await taking.run()).toBeLessThan(releasedMs);
    await Promise.all([whole.close(), taking.close()]);
    const timed = new Timed({ requestsPerConnection: 1 });
    const fromMs = performance.now();
    timed.count(fromMs, fromMs + 90, fromMs + 20);
    expect(timed.result().p50Ms).toBeCloseTo(20);
  });

  it('of etcd gives no figures when the key was there already', async () => {
    const { port } = await serving(({ url }) => ({ status: 200, body: url === '/v3/lease/grant' ? { ID: '7' } : { succeeded: false } }));
    await expect(twice(port, { kind: 'etcd-lock' })).rejects.toThrow('did not give the lock');
  });

  it('of WebDAV shows the token of its lock with the write', async () => {
    const conditions: unknown[] = [];
    const { port, seen } = await serving(({ method, headers }) => {
      if (method === 'PUT') conditions.push(headers['if']);
      return method === 'LOCK' ? { status: 200, headers: { 'Lock-Token': '<opaquelocktoken:1>' } } : { status: 204 };
    });
    await twice(port, { kind: 'webdav', bodyBytes: 10 });
    expect(seen.slice(0, 3)).toEqual(['LOCK /cycle-0', 'PUT /cycle-0', 'UNLOCK /cycle-0']);
    expect(conditions).toEqual(['(<opaquelocktoken:1>)', '(<opaquelocktoken:1>)']);
  });

  it('of Redis gives no figures when a key was not set', async () => {
    const port = await portOf(createTcpServer((socket) => socket.on('error', () => undefined).on('data', () => socket.write('$-1\r\n'))));
    await expect(twice(port, { kind: 'redis-lock' })).rejects.toThrow('redis answered $-1 to SET');
  });
});

/** One lock and its line, as the gateway answers about it. */
function lockServer(): (request: IncomingMessage) => Answer | Promise<Answer> {
  const waiting: ((answer: Answer) => void)[] = [];
  let held = false;
  let made = 0;
  const lease = (): Answer => ({ status: 201, body: { lease_id: `l${++made}`, state: 'held' } });
  return ({ method }) => {
    if (method === 'GET') return { status: 200, body: { queue_length: waiting.length } };
    if (method === 'POST' && held) return new Promise((resolve) => waiting.push(resolve));
    if (method === 'POST') {
      held = true;
      return lease();
    }
    const next = waiting.shift();
    held = next !== undefined;
    next?.(lease());
    return { status: 204 };
  };
}

describe('the hand-over load', () => {
  it('begins when the line stands, hands the lock on and leaves it free', async () => {
    const { port, seen } = await serving(lockServer());
    const plan = { plan: 'hand-over', port, resource: 'v/a', waiters: 5, amount: { warmUpMs: 0, measureMs: 50 } } as const;
    const result = await runHandOver(plan);
    expect(result.requests).toBeGreaterThan(0);
    const of = (method: string): number => seen.filter((request) => request.startsWith(method)).length;
    expect(of('POST')).toBe(of('DELETE'));
    expect(result.requestsAll).toBe(of('DELETE'));
  });

  it('gives no figures when an answer is refused', async () => {
    const { port } = await serving(({ method }) => (method === 'POST' ? { status: 429, body: {} } : { status: 200, body: { queue_length: 0 } }));
    await expect(runHandOver({ plan: 'hand-over', port, resource: 'v/a', waiters: 2, amount: { warmUpMs: 0, measureMs: 10 } })).rejects.toThrow(
      'answered 429',
    );
  });
});

describe('the heartbeat load', () => {
  const plan = { plan: 'heartbeats', volume: 'v', leases: 6, everyMs: 1_000, batch: 3, measureMs: 1_000 } as const;

  it('makes the sessions once and renews each as often as it is due', async () => {
    let made = 0;
    const beats = new Map<string, number>();
    const { port } = await serving(({ url }, body) => {
      if (url === '/v1/leases') return { status: 201, body: { session_id: `s${++made}` } };
      const ids = (JSON.parse(body) as { session_ids: string[] }).session_ids;
      for (const id of ids) beats.set(id, (beats.get(id) ?? 0) + 1);
      return { status: 200, body: { sessions: ids.map(() => ({ code: null })) } };
    });
    await runHeartbeats({ ...plan, port });
    expect(made).toBe(6);
    // One beat before the measured time, one in it.
    expect([...beats.values()]).toEqual([2, 2, 2, 2, 2, 2]);
  });

  it('gives no figures when a session was not renewed', async () => {
    const { port } = await serving(({ url }) =>
      url === '/v1/leases'
        ? { status: 201, body: { session_id: 's' } }
        : { status: 200, body: { sessions: [{ code: null }, { code: 'session_ended' }, { code: null }] } },
    );
    await expect(runHeartbeats({ ...plan, port })).rejects.toThrow('1 of 3 sessions were not renewed');
  });
});

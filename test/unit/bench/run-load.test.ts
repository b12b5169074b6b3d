import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import type { RequestPlan } from '../../../bench/load/plan.ts';
import { runLoad } from '../../../bench/load/run-load.ts';
import { requestHead } from '../../../bench/peers/http-peer.ts';

let server: Server | null = null;

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

async function listen(answer: RequestListener, onExpect?: RequestListener): Promise<number> {
  server = createServer(answer);
  if (onExpect !== undefined) server.on('checkContinue', onExpect);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

function put(port: number, bodyBytes: number, expectsContinue: boolean): RequestPlan {
  const expectation = expectsContinue ? { Expect: '100-continue' } : {};
  return { head: requestHead('PUT', '/a', port, { 'Content-Length': bodyBytes, ...expectation }), bodyBytes, expectsContinue };
}

/** Answers when the whole body has arrived, and counts its bytes. */
function reading(bytes: { count: number }, status: number): RequestListener {
  return (request, response) => {
    request.on('data', (chunk: Buffer) => {
      bytes.count += chunk.length;
    });
    request.on('end', () => response.writeHead(status, { 'content-length': 0 }).end());
  };
}

describe('the load driver', () => {
  it.each([0, 1024, 3 * 1024 * 1024 + 1])('sends a body of %i bytes with each request on each connection', async (bodyBytes) => {
    const bytes = { count: 0 };
    const port = await listen(reading(bytes, 201));
    const requests = [put(port, bodyBytes, false), put(port, bodyBytes, false)];
    const result = await runLoad({ port, requests, statuses: [201], amount: { requestsPerConnection: 3 } });
    expect(result).toMatchObject({ requests: 6, requestsAll: 6, bodyBytesSent: 6 * bodyBytes });
    expect(bytes.count).toBe(6 * bodyBytes);
  });

  it('sends the body after a 100 when it asked first', async () => {
    const bytes = { count: 0 };
    const port = await listen(reading(bytes, 200));
    const result = await runLoad({ port, requests: [put(port, 70_000, true)], statuses: [200], amount: { requestsPerConnection: 2 } });
    expect(result.bodyBytesSent).toBe(140_000);
    expect(bytes.count).toBe(140_000);
  });

  it('sends no body after a refusal, and asks again on a new connection', async () => {
    let connections = 0;
    const port = await listen(
      () => {},
      (_request, response) => response.writeHead(412, { 'content-length': 0 }).end(),
    );
    server?.on('connection', () => {
      connections += 1;
    });
    const result = await runLoad({ port, requests: [put(port, 1024, true)], statuses: [412], amount: { requestsPerConnection: 3 } });
    expect(result).toMatchObject({ requests: 3, bodyBytesSent: 0 });
    expect(connections).toBe(3);
  });

  it('gives no figures when an answer is not the one that was planned', async () => {
    const port = await listen(reading({ count: 0 }, 503));
    await expect(runLoad({ port, requests: [put(port, 10, false)], statuses: [201], amount: { requestsPerConnection: 1 } })).rejects.toThrow(
      'answered 503 where 201 was due',
    );
  });

  it('gives no figures when the server hangs up', async () => {
    const port = await listen((request) => request.socket.destroy());
    await expect(runLoad({ port, requests: [put(port, 10, false)], statuses: [201], amount: { requestsPerConnection: 1 } })).rejects.toThrow();
  });
});

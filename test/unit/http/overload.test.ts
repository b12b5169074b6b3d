import { expect, test } from 'vitest';
import { LIMITS } from '../../../src/domain/limits.ts';
import { startHttp } from '../../support/http-server.ts';

test('a process that is behind refuses work as overloaded, and still answers for its health', async () => {
  const server = await startHttp({ eventLoopDelayMsMax: 1 });
  try {
    // The first sample after the start is not counted.
    server.deps.clock.advance(LIMITS.pressureSampleMs);
    const until = Date.now() + 8_000;
    const block = setInterval(() => {
      const end = Date.now() + 100;
      while (Date.now() < end) {
        // Holds the event loop, as too much work would.
      }
    }, 110);
    try {
      let status = 0;
      while (status !== 503 && Date.now() < until) status = (await server.fetch('/v1/volumes')).status;
      const answer = await server.fetch('/v1/volumes');
      expect([status, answer.status, answer.headers.get('retry-after')]).toEqual([503, 503, '1']);
      expect(await answer.json()).toMatchObject({ code: 'overloaded' });
      expect((await server.fetch('/healthz')).status).toBe(200);
    } finally {
      clearInterval(block);
    }
  } finally {
    await server.close();
  }
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LIMITS } from '../../src/domain/limits.ts';
import { type Answer, eventually, verdictOf } from '../support/gateway-client.ts';
import { volumeSnapshot } from '../support/volume-snapshot.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

let gateway: VolumesGateway;
beforeAll(async () => {
  gateway = await startVolumes();
});
afterAll(() => gateway.stop());

/** Keeps the event loop of this process, which is the gateway's, from turning. */
function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

describe('a gateway whose event loop is far behind', () => {
  it('answers 503 overloaded before it looks at anything else, says when to come back, and stays alive for probes', async () => {
    const { client } = gateway;
    const before = volumeSnapshot(gateway.path('v'));
    const lease = await client.lease('v/held');
    let refused: Answer | undefined;
    for (let turn = 0; turn < 10 && refused === undefined; turn += 1) {
      block(LIMITS.eventLoopDelayMsMax + 500);
      const [renewed, answer] = await Promise.all([
        client.post(`/v1/leases/${lease.lease_id}/renew`, {}),
        client.put('v/a', 'x', { 'if-match': '"never"' }),
      ]);
      // A holder does not lose its lease because others want too much.
      expect(renewed.status).toBe(200);
      if (answer.status === 503) refused = answer;
    }
    expect([refused && verdictOf(refused), Number(refused?.headers['retry-after']) >= 1]).toEqual(['503 overloaded', true]);
    expect([(await client.send('GET', '/healthz')).status, volumeSnapshot(gateway.path('v'))]).toEqual([200, before]);
    await eventually(
      () => client.get('v/'),
      ({ status }) => status === 200,
    );
    expect((await client.put('v/a', 'x')).status).toBe(201);
    expect(await client.audit({ code: 'overloaded' })).toMatchObject([{ outcome: 'rejected', status: 503, principal: null }]);
  });
});

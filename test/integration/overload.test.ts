import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LIMITS } from '../../src/domain/limits.ts';
import { freePort } from '../support/free-port.ts';
import { type Answer, eventually, verdictOf } from '../support/gateway-client.ts';
import { GrpcLockClient, refusal } from '../support/grpc-client.ts';
import { volumeSnapshot } from '../support/volume-snapshot.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

let gateway: VolumesGateway;
let grpc: GrpcLockClient;
beforeAll(async () => {
  const port = await freePort();
  gateway = await startVolumes({ environment: { FENCEGATE_GRPC_PORT: String(port) } });
  grpc = new GrpcLockClient(port);
});
afterAll(async () => {
  grpc.close();
  await gateway.stop();
});

/** Keeps the event loop of this process, which is the gateway's, from turning. */
function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

describe('a gateway whose event loop is far behind', () => {
  it('answers overloaded before it looks at anything else, over HTTP and gRPC, says when to come back, lets holders renew, and stays alive for probes', async () => {
    const { client } = gateway;
    const before = volumeSnapshot(gateway.path('v'));
    const lease = await client.lease('v/held');
    let refused: Answer | undefined;
    let refusedCall = '';
    for (let turn = 0; turn < 10 && (refused === undefined || refusedCall === ''); turn += 1) {
      block(LIMITS.eventLoopDelayMsMax + 500);
      const [renewed, renewedCall, answer, call] = await Promise.all([
        client.post(`/v1/leases/${lease.lease_id}/renew`, {}),
        grpc.renew({ lease_id: lease.lease_id }),
        client.put('v/a', 'x', { 'if-match': '"never"' }),
        refusal(grpc.acquire({ resource_path: 'v/b', hold_id: String(turn) })),
      ]);
      // A holder does not lose its lease because others want too much.
      expect([renewed.status, renewedCall.acquired]).toEqual([200, true]);
      if (answer.status === 503) refused = answer;
      if (!call.startsWith('answered')) refusedCall = call;
    }
    expect([refused && verdictOf(refused), Number(refused?.headers['retry-after']) >= 1]).toEqual(['503 overloaded', true]);
    expect(refusedCall).toBe('UNAVAILABLE overloaded');
    expect([(await client.send('GET', '/healthz')).status, volumeSnapshot(gateway.path('v'))]).toEqual([200, before]);
    await eventually(
      () => client.get('v/'),
      ({ status }) => status === 200,
    );
    expect((await client.put('v/a', 'x')).status).toBe(201);
    const records = await client.audit({ code: 'overloaded' });
    expect(records.length).toBeGreaterThan(0);
    for (const record of records) expect(record).toMatchObject({ outcome: 'rejected', status: 503, principal: null });
    const metrics = (await client.send('GET', '/metrics')).bytes.toString();
    for (const [method, status] of [
      ['AcquireLock', 'UNAVAILABLE'],
      ['RenewLock', 'OK'],
    ]) {
      expect(metrics).toContain(`fencegate_request_seconds_count{method="gRPC",route="/fencegate.v1.LockService/${method}",status="${status}"}`);
    }
  });
});

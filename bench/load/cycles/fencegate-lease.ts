import type { Cycle } from '../cycle-plan.ts';
import type { CycleClient } from './cycle-client.ts';
import { HttpClient } from './http-client.ts';

const TTL_MS = 30_000;

type Lease = Extract<Cycle, { kind: 'fencegate-lease' }>;

export function fencegateLease(port: number, name: string, { names, timed }: Pick<Lease, 'names' | 'timed'>): CycleClient {
  const http = new HttpClient(port);
  const run = `${process.pid}-${Date.now().toString(36)}`;
  let cycles = 0;
  const headers = { 'content-type': 'application/json' };
  return {
    run: async () => {
      const resource = names === 'new' ? `${name}-${run}-${cycles++}` : name;
      const body = JSON.stringify({ resource, ttl_ms: TTL_MS, client_id: 'bench' });
      const { text } = await http.send('POST', '/v1/leases', [201], body, headers);
      const takenMs = performance.now();
      await http.send('DELETE', `/v1/leases/${leaseIdOf(text)}`, [204]);
      return timed === 'acquire' ? takenMs : null;
    },
    close: () => http.close(),
  };
}

/** Read out of the text: parsing it whole would cost the driver more than the rest of its cycle. */
export function leaseIdOf(text: string): string {
  const id = /"lease_id":"([^"]+)"/.exec(text)?.[1];
  if (id === undefined) throw new Error('a lease without lease_id');
  return id;
}

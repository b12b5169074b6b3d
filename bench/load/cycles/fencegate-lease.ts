import type { CycleClient } from './cycle-client.ts';
import { HttpClient } from './http-client.ts';

const TTL_MS = 30_000;

export function fencegateLease(port: number, resource: string): CycleClient {
  const http = new HttpClient(port);
  const body = JSON.stringify({ resource, ttl_ms: TTL_MS, client_id: 'bench' });
  const headers = { 'content-type': 'application/json' };
  return {
    run: async () => {
      const { text } = await http.send('POST', '/v1/leases', [201], body, headers);
      await http.send('DELETE', `/v1/leases/${leaseIdOf(text)}`, [204]);
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

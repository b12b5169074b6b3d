import type { CycleClient } from './cycle-client.ts';
import { HttpClient } from './http-client.ts';

const TTL_SECONDS = 30;

/** What etcd's own lock does for a free name, less its waiting: a lease, a key made only if it is not there, and both gone at once by revoking the lease. */
export function etcdLock(port: number, name: string): CycleClient {
  const http = new HttpClient(port);
  const key = Buffer.from(name).toString('base64');
  return {
    run: async () => {
      const { ID: lease } = await http.json('POST', '/v3/lease/grant', [200], { TTL: TTL_SECONDS });
      const { succeeded } = await http.json('POST', '/v3/kv/txn', [200], {
        compare: [{ key, target: 'CREATE', create_revision: '0' }],
        success: [{ request_put: { key, value: key, lease } }],
      });
      if (succeeded !== true) throw new Error('etcd did not give the lock');
      await http.json('POST', '/v3/lease/revoke', [200], { ID: lease });
      return null;
    },
    close: () => http.close(),
  };
}

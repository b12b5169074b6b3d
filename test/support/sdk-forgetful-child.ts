import { FencegateClient } from '../../src/client/index.ts';

/** A program that comes to its end and never closes its client: `url resource`. It has a lease for long enough to be followed by a stream. */
const [, , url = '', resource = ''] = process.argv;
const client = new FencegateClient({ url, clientId: 'forgetful' });
const lease = await client.lease(resource, { ttlMs: 600_000 });
await new Promise((resolve) => setTimeout(resolve, 1_000));
process.stdout.write(`${lease.state}\n`);

// A lock taken, waited for and watched over gRPC, with a client that is made from the .proto file alone.
// Run against a gateway with FENCEGATE_GRPC_PORT=9090: node examples/grpc.mjs [127.0.0.1:9090] [volume/path]
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { credentials, loadPackageDefinition, Metadata, status } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

const address = process.argv[2] ?? '127.0.0.1:9090';
const resource = process.argv[3] ?? 'demo/example/grpc.csv';
const proto = fileURLToPath(new URL('../proto/fencegate/v1/lock_service.proto', import.meta.url));

// longs: String: a token has 63 bits, a double 53.
const { fencegate } = loadPackageDefinition(loadSync(proto, { keepCase: true, longs: String, enums: String, defaults: true, oneofs: true }));
const client = new fencegate.v1.LockService(address, credentials.createInsecure());
const metadata = new Metadata();
if (process.env.FENCEGATE_AUTH_TOKEN) metadata.set('authorization', `Bearer ${process.env.FENCEGATE_AUTH_TOKEN}`);

const acquire = promisify((request, options, done) => client.AcquireLock(request, metadata, options, done));
const renew = promisify((request, done) => client.RenewLock(request, metadata, done));
const release = promisify((request, done) => client.ReleaseLock(request, metadata, done));

const watch = client.WatchLock({ resource_path: resource }, metadata);
const events = [];
watch.on('data', ({ type, client_id: who }) => events.push(`${who} ${type}`));
watch.on('error', ({ code }) => {
  if (code !== status.CANCELLED) throw new Error(`the watch ended: ${status[code]}`);
});
await once(watch, 'metadata');

const alice = await acquire({ resource_path: resource, client_id: 'alice', session_timeout_ms: 30_000 }, {});
console.log(`alice holds it under token ${alice.fencing_token}`);

const attempt = await acquire({ resource_path: resource, client_id: 'bob' }, {});
console.log(`bob tried: acquired ${attempt.acquired}, ${attempt.reason}`);

// Bob stands in line until the deadline of his call. Cancelling the call would leave the line.
const bob = acquire({ resource_path: resource, client_id: 'bob', wait_blocking: true }, { deadline: Date.now() + 60_000 });
while (!events.includes('bob WAITING')) await once(watch, 'data');
await renew({ lease_id: alice.lease_id });
await release({ lease_id: alice.lease_id });
const { fencing_token: token, lease_id: id } = await bob;
console.log(`bob holds it under a higher token: ${BigInt(token) > BigInt(alice.fencing_token)}`);

// What ended does not come back. `reason` in the trailer's google.rpc.ErrorInfo is the same code that HTTP gives.
await renew({ lease_id: alice.lease_id }).catch(({ code, details }) => console.log(`alice was refused: ${status[code]}, ${details}`));

await release({ lease_id: id });
while (!events.includes('bob RELEASED')) await once(watch, 'data');
console.log(events.join(', '));
watch.cancel();
client.close();

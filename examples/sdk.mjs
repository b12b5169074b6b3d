// Two clients and one file: what a lease protects, and what happens to a writer who has lost it.
// Run against a gateway with: FENCEGATE_URL=http://127.0.0.1:8080 node examples/sdk.mjs [volume/path]
import { clientFromEnvironment, isFencegateError } from 'fencegate/client';

const resource = process.argv[2] ?? 'demo/example/ledger.csv';
const [alice, bob] = ['alice', 'bob'].map((clientId) => clientFromEnvironment(process.env, { clientId }));

await alice.withLease(resource, { waitMs: 10_000 }, async (lease) => {
  const { size_bytes: size } = await lease.put(resource, 'day,amount\n');
  await lease.append(resource, 'monday,12\n', { offset: size });
  console.log(`alice wrote under token ${lease.token}`);
});

// Alice takes the file again and stops listening; an operator gives it to Bob.
const forgotten = await alice.lease(resource, { ttlMs: 30_000 });
await bob.breakLock(resource, { reason: 'alice does not answer' });
await bob.withLease(resource, { waitMs: 10_000 }, (lease) => lease.append(resource, 'tuesday,7\n'));

try {
  await forgotten.append(resource, 'too late\n');
} catch (error) {
  if (!isFencegateError(error, 'stale_token', 'lease_lost')) throw error;
  console.log(`alice was refused: ${error.code}`);
}

process.stdout.write(await (await bob.get(resource)).text());
for await (const record of bob.audit({ path: resource.slice(resource.indexOf('/') + 1), outcome: 'rejected' })) {
  console.log(`audit: ${record.action} by ${record.client_id} rejected, ${record.code}`);
}

await alice.close();
await bob.close();

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { CliProcess } from '../support/cli-process.ts';
import { GatewayClient, jsonOf } from '../support/gateway-client.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { bearerOf, principalsFile } from '../support/volumes-gateway.ts';

const BIN = fileURLToPath(new URL('../../bin/fencegate.cjs', import.meta.url));

it('no secret is in the log, at any level: bearer tokens, lease and session ids, keys, and no URL that holds one', async () => {
  const directory = temporaryDirectory();
  for (const name of ['v', 's']) mkdirSync(join(directory, name));
  const key = 'a signing key that is a secret of its own'.padEnd(64, '!');
  writeFileSync(join(directory, 'key'), key, { mode: 0o600 });
  writeFileSync(
    join(directory, 'auth.yaml'),
    principalsFile([
      { name: 'writer', roles: ['writer', 'reader'] },
      { name: 'admin', roles: ['admin'] },
    ]),
  );
  writeFileSync(
    join(directory, 'fencegate.yaml'),
    `volumes:\n  v: { path: ${directory}/v }\n  s: { path: ${directory}/s, tokens: signed }\nsigning_keys: [{ id: k1, file: ${directory}/key }]\naudit: { key_file: ${directory}/key }\n`,
  );
  const gateway = new CliProcess(
    [BIN, 'serve'],
    { FENCEGATE_PORT: '0', FENCEGATE_LOG_LEVEL: 'trace', FENCEGATE_CONFIG: 'fencegate.yaml', FENCEGATE_AUTH_FILE: 'auth.yaml' },
    directory,
  );
  onTestFinished(() => gateway.signal('SIGKILL'));
  await gateway.says('"listening"');
  const anonymous = new GatewayClient(String(gateway.line('"listening"')['url']));
  const client = anonymous.as(bearerOf('writer'));

  const session = jsonOf<{ session_id: string }>(await client.post('/v1/sessions', {})).session_id;
  const held = await client.lease('v/a', { session_id: session });
  const signed = await client.lease('s/a');
  const own = { 'x-fencing-token': held.fencing_token, 'x-lease-id': held.lease_id };
  await client.put('v/a', 'x', own);
  await client.put('s/a', 'x', { 'x-fencing-token': signed.signed_token ?? '' });
  await anonymous.as('a-wrong-token-of-somebody').put('v/a', 'x', own);
  await anonymous.as(bearerOf('admin')).put('v/a', 'x', { ...own, 'x-lease-id': `${held.lease_id}-not` });
  for (const target of [
    `/v1/leases/${held.lease_id}`,
    `/v1/leases/${held.lease_id}?hold_id=${held.lease_id}`,
    `/v1/nothing/${held.lease_id}`,
    `/v1/sessions/${session}`,
    `/v1/leases/%zz${held.lease_id}`,
  ]) {
    for (const method of ['GET', 'POST', 'DELETE']) await client.send(method, target);
  }
  await client.send('POST', '/v1/leases', { headers: { 'content-type': 'application/json' }, body: `{"session_id":"${session}` });
  await client.post('/v1/leases', { resource: 'v/a', session_id: session, colour: held.lease_id });
  await client.send('POST', `/v1/sessions/${session}/heartbeat`);

  gateway.signal('SIGTERM');
  expect(await gateway.ended()).toEqual({ code: 0, signal: null });
  expect(gateway.stdout.split('\n').length).toBeGreaterThan(20);
  const said = gateway.stdout + gateway.stderr;
  const secrets = [
    bearerOf('writer'),
    bearerOf('admin'),
    'a-wrong-token-of-somebody',
    held.lease_id,
    signed.lease_id,
    signed.signed_token ?? '-',
    session,
    key,
  ];
  expect(secrets.filter((secret) => said.includes(secret))).toEqual([]);
});

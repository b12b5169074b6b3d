import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GatewayClient, type LeaseJson, verdictOf } from '../support/gateway-client.ts';
import { newDirectory } from '../support/gateway-settings.ts';
import { bearerOf, principalsFile, startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** A volume with `tokens: signed`: a token that was not signed by one of our keys is not even looked up. */

const AUTH = principalsFile([
  { name: 'writer', roles: ['writer'] },
  { name: 'rival', roles: ['writer'] },
]);
let directory: string;
let gateway: VolumesGateway;

async function start(keyIds: readonly string[]): Promise<void> {
  gateway = await startVolumes({
    directory,
    auth: AUTH,
    volumes: { v: { tokens: 'signed' }, plain: {} },
    settings: { signing_keys: keyIds.map((id) => ({ id, file: join(directory, `${id}.key`) })) },
  });
}

const as = (name: string): GatewayClient => gateway.client.as(bearerOf(name));
const signed = ({ signed_token: value }: LeaseJson) => ({ 'x-fencing-token': value ?? 'none' });

beforeAll(async () => {
  directory = await newDirectory();
  for (const id of ['k1', 'k2']) writeFileSync(join(directory, `${id}.key`), Buffer.alloc(32, id).toString('hex'), { mode: 0o600 });
  await start(['k1']);
});
afterAll(() => gateway.stop());

describe('signed tokens', () => {
  it('are given with the lease, and write', async () => {
    const held = await as('writer').lease('v/a');
    expect(held.signed_token).toMatch(new RegExp(`^${held.fencing_token}\\.[A-Za-z0-9_-]+\\.[a-z]+\\.k1\\.[A-Za-z0-9_-]{43}$`));
    const answer = await as('writer').put('v/a', 'x', signed(held));
    expect([verdictOf(answer), answer.headers['x-fencing-token']]).toEqual(['201', held.fencing_token]);
    await as('writer').release(held);
    expect(verdictOf(await as('writer').put('v/a', 'x', signed(held)))).toBe('412 lease_ended');
  });

  it('are asked for: the plain number is malformed there, and a volume without them has none', async () => {
    const held = await as('writer').lease('v/b');
    expect(verdictOf(await as('writer').put('v/b', 'x', { 'x-fencing-token': held.fencing_token }))).toBe('400 invalid_token');
    const plain = await as('writer').lease('plain/b');
    expect(plain.signed_token).toBeNull();
    expect(verdictOf(await as('writer').put('plain/b', 'x', signed(held)))).toBe('400 invalid_token');
  });

  it('are void for another resource, another principal, and with any part changed', async () => {
    const held = await as('writer').lease('v/c');
    const other = await as('writer').lease('v/d');
    const text = held.signed_token ?? '';
    const [number = '', ref = '', mode = '', key = '', mac = ''] = text.split('.');
    expect(verdictOf(await as('writer').put('v/d', 'x', signed(held)))).toBe('403 token_not_issued');
    expect(verdictOf(await as('rival').put('v/c', 'x', signed(held)))).toBe('403 token_not_issued');
    const forged = [
      [(BigInt(number) + 1n).toString(), ref, mode, key, mac],
      [number, other.lease_ref, mode, key, mac],
      [number, ref, mode, 'k2', mac],
      [number, ref, mode, key, mac.replace(/.$/, (c) => (c === 'A' ? 'E' : 'A'))],
      [number, ref, mode === 'exclusive' ? 'shared' : 'exclusive', key, mac],
      [number, ref, mode, key, (other.signed_token ?? '').split('.')[4] ?? ''],
    ];
    for (const parts of forged)
      expect(verdictOf(await as('writer').put('v/c', 'x', { 'x-fencing-token': parts.join('.') }))).toMatch(
        /^(403 token_not_issued|400 invalid_token)$/,
      );
    for (const malformed of [`${text}.`, text.slice(0, -10), `0${text}`, [number, ref, mode, key].join('.'), ` ${number}`]) {
      expect(verdictOf(await as('writer').put('v/c', 'x', { 'x-fencing-token': malformed }))).toMatch(/^40[03] (invalid_token|token_not_issued)$/);
    }
    expect(verdictOf(await as('writer').put('v/c', 'x', signed(held)))).toBe('201');
  });

  it('keys rotate by key id: the first signs, all verify, a removed one is void; leases live on', async () => {
    const old = await as('writer').lease('v/rotated', { ttl_ms: 600_000 });
    await gateway.halt();
    await start(['k2', 'k1']);
    expect(verdictOf(await as('writer').put('v/rotated', 'old key', signed(old)))).toBe('201');
    const fresh = await as('writer').lease('v/fresh', { ttl_ms: 600_000 });
    expect(fresh.signed_token).toContain('.k2.');
    await gateway.halt();
    await start(['k2']);
    expect(verdictOf(await as('writer').put('v/rotated', 'x', signed(old)))).toBe('403 token_not_issued');
    expect(verdictOf(await as('writer').put('v/fresh', 'x', signed(fresh)))).toBe('201');
  });
});

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { removeDirectory, startGateway, type TestGateway } from '../support/gateway.ts';
import { get, put } from '../support/http-client.ts';
import { IS_SMALL } from '../support/nfs-control.ts';

/** X8, F4: on NFS a full disk is reported by fsync alone; every write before it succeeded. The export has 16 MiB. */
describe.runIf(IS_SMALL)('an export that is full', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(async () => {
    await gateway.stop();
    await removeDirectory(gateway.directory);
  });

  it('refuses with 507 what does not fit; the old bytes stay, nothing staged is left, and what fits goes through', async () => {
    const kept = 'kept '.repeat(1_000);
    const first = await put(gateway.url, 'v/kept.txt', kept);
    expect(first.status).toBe(201);
    for (const round of [1, 2]) {
      const refused = await put(gateway.url, 'v/kept.txt', Buffer.alloc(24 * 1_048_576, round));
      expect([round, refused.status, refused.json['code']]).toEqual([round, 507, 'insufficient_storage']);
      const served = await get(gateway.url, '/v1/files/v/kept.txt');
      expect([served.text === kept, served.headers['etag']]).toEqual([true, first.headers['etag']]);
      const control = join(gateway.volume, '.fencegate');
      const [own = ''] = readdirSync(control).filter((name) => /^[0-9a-f]{32}$/.test(name));
      expect(readdirSync(join(control, own)).filter((name) => !name.endsWith('.draft'))).toEqual([]);
    }
    expect((await put(gateway.url, 'v/small.txt', 'fits')).status).toBe(201);
    expect((await get(gateway.url, '/readyz')).json).toMatchObject({ ready: true, volumes: [{ state: 'open' }] });
  });
});

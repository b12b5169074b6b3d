import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { removeDirectory, startGateway, type TestGateway } from '../support/gateway.ts';
import { get } from '../support/http-client.ts';
import { IS_SOFT, NFS_VERSION } from '../support/nfs-control.ts';
import { VOLUME_BASE } from '../support/volume-base.ts';
import { volumesOpen } from '../support/volumes-open.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
  await volumesOpen(gateway.url);
});
afterAll(async () => {
  await gateway.stop();
  await removeDirectory(gateway.directory);
});

it('the list of volumes tells the mount, its options as in effect, what they weaken, and what cannot be seen', async () => {
  const { volumes } = (await get(gateway.url, '/v1/admin/volumes')).json as { volumes: { mount: Record<string, unknown>; fence_level: string }[] };
  const [{ mount, fence_level: level } = { mount: {}, fence_level: '' }] = volumes;
  expect(level).toBe('incarnation');
  expect(mount).toMatchObject({ network: true, file_system: NFS_VERSION === '3' ? 'nfs' : 'nfs4', note: expect.stringContaining('async') });
  expect(mount['options']).toEqual(expect.arrayContaining([`vers=${NFS_VERSION}`, IS_SOFT ? 'soft' : 'hard']));
  const warned = (mount['warnings'] as { option: string }[]).map(({ option }) => option);
  expect(warned.includes('soft')).toBe(IS_SOFT);
  expect(warned.includes('nolock')).toBe(NFS_VERSION === '3');
  expect(warned).toContain('lookupcache=all');
});

it('F31: a data directory on it is refused', async () => {
  const data = mkdtempSync(join(VOLUME_BASE, 'data-'));
  const volume = mkdtempSync(join(tmpdir(), 'fencegate-volume-'));
  onTestFinished(() => {
    for (const each of [data, volume]) rmSync(each, { recursive: true, force: true });
  });
  const environment = { FENCEGATE_DATA_DIR: data, FENCEGATE_VOLUMES: `v=${volume}` };
  await expect(startGateway({ environment })).rejects.toThrow(/network file system \(NFS\)/);
});

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { ASYNC_IS_NOT_SEEN } from '../../src/domain/mount-facts.ts';
import { startGateway } from '../support/gateway.ts';
import { GatewayProcess } from '../support/gateway-process.ts';
import { removeDirectory } from '../support/gateway-settings.ts';
import { get } from '../support/http-client.ts';
import { IS_SOFT, NFS_VERSION } from '../support/nfs-control.ts';
import { until } from '../support/until.ts';
import { newGatewayDirectory, VOLUME_BASE } from '../support/volume-base.ts';

let gateway: GatewayProcess;
beforeAll(async () => {
  gateway = await GatewayProcess.start(newGatewayDirectory(), { environment: { FENCEGATE_LOG_LEVEL: 'info' }, outlivesTest: true });
  await gateway.opened();
});
afterAll(async () => {
  await gateway.kill();
  await removeDirectory(gateway.directory);
});

type Warning = Readonly<Record<'option' | 'weakens' | 'remedy', string>>;

/** Every line of its log with that message. */
function logged(message: string): (Warning & { readonly volume: string })[] {
  const lines = gateway.log.split('\n').filter((line) => line.endsWith('}'));
  return lines.map((line) => JSON.parse(line) as Warning & { message: string; volume: string }).filter((line) => line.message === message);
}

it('the list of volumes tells the mount, its options as in effect, what they weaken with the remedy, and what cannot be seen; the log of the start does, too', async () => {
  const { volumes } = (await get(gateway.url, '/v1/admin/volumes')).json as { volumes: { mount: Record<string, unknown>; fence_level: string }[] };
  const [{ mount, fence_level: level } = { mount: {}, fence_level: '' }] = volumes;
  expect(level).toBe('incarnation');
  expect(mount).toMatchObject({ network: true, file_system: NFS_VERSION === '3' ? 'nfs' : 'nfs4', note: expect.stringContaining('async') });
  expect(mount['options']).toEqual(expect.arrayContaining([`vers=${NFS_VERSION}`, IS_SOFT ? 'soft' : 'hard']));
  const warnings = mount['warnings'] as Warning[];
  for (const { weakens, remedy } of warnings) expect([weakens, remedy]).not.toContain('');
  // Once for each try to open the volume.
  await until(() => (logged(ASYNC_IS_NOT_SEEN).length > 0 ? true : null));
  const told = warnings.map((warning) => expect.objectContaining({ volume: 'v', ...warning }));
  expect(logged('a mount option weakens what the volume promises')).toEqual(expect.arrayContaining(told));
  const warned = warnings.map(({ option }) => option);
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

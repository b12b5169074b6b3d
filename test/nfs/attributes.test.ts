import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { aclWith, rightsOf, setAttribute } from '../support/attributes.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { removeDirectory } from '../support/gateway-settings.ts';
import { put, send } from '../support/http-client.ts';
import { NFS_VERSION, ON_SERVER } from '../support/nfs-control.ts';
import { VOLUME_BASE } from '../support/volume-base.ts';
import { volumesOpen } from '../support/volumes-open.ts';

/** F27 on a network mount: what the mount can carry goes over to the new inode. Looked at where the server has it, behind every cache. */

let gateway: TestGateway;
let onServer: string;
beforeAll(async () => {
  gateway = await startGateway();
  await volumesOpen(gateway.url);
  onServer = gateway.volume.replace(VOLUME_BASE, ON_SERVER);
});
afterAll(async () => {
  await gateway.stop();
  await removeDirectory(gateway.directory);
});

const notCarried = async (): Promise<number> => {
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
  return Number(/^fencegate_attributes_not_carried_total\{volume="v"\} (\d+)$/m.exec(metrics)?.[1]);
};
const replace = (name: string): Promise<{ readonly status: number }> => put(gateway.url, `v/${name}`, 'new');

describe('a file that is replaced', () => {
  it('keeps its ACL: a POSIX ACL of the server is one to version 3, and an NFS 4 ACL to version 4', async () => {
    const path = join(onServer, 'acl.txt');
    writeFileSync(path, 'old');
    setAttribute(path, 'system.posix_acl_access', aclWith(5_678));
    const before = rightsOf(path);
    expect((await replace('acl.txt')).status).toBe(200);
    expect(
      (await send(gateway.url, { method: 'PATCH', path: '/v1/files/v/acl.txt', headers: { 'x-update-range': 'append' }, body: '!' })).status,
    ).toBe(200);
    expect(rightsOf(path)).toEqual(before);
    expect(await notCarried()).toBe(0);
  });

  it('without an ACL gets none', async () => {
    const path = join(onServer, 'plain.txt');
    writeFileSync(path, 'old', { mode: 0o640 });
    expect((await replace('plain.txt')).status).toBe(200);
    expect(rightsOf(path)).toMatchObject({ mode: '640', attributes: {} });
    expect(await notCarried()).toBe(0);
  });

  it('keeps its user attributes on version 4.2; to version 3 they do not exist', async () => {
    const path = join(onServer, 'user.txt');
    writeFileSync(path, 'old');
    setAttribute(path, 'user.owner', 'finance');
    const { attributes } = rightsOf(path);
    expect((await replace('user.txt')).status).toBe(200);
    expect(rightsOf(path).attributes).toEqual(NFS_VERSION === '3' ? {} : attributes);
  });
});

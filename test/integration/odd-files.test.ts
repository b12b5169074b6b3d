import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, linkSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { aclWith, rightsOf, setAttribute } from '../support/attributes.ts';
import { type Answer, jsonOf, textOf, verdictOf } from '../support/gateway-client.ts';
import { quietSnapshot, volumeSnapshot } from '../support/volume-snapshot.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** What is not a plain file or directory, and files with more than one name or less than all rights. */

let gateway: VolumesGateway;
let listening: Server;

beforeAll(async () => {
  gateway = await startVolumes({
    volumes: { v: {}, split: { hard_links: 'split' }, inplace: { range_writes: 'in-place' }, bare: { attributes: 'drop' } },
  });
  const at = (name: string): string => gateway.path(`v/${name}`);
  mkdirSync(`${gateway.directory}/outside`);
  writeFileSync(`${gateway.directory}/outside/file`, 'outside');
  writeFileSync(at('file'), 'file');
  mkdirSync(at('dir'));
  writeFileSync(at('dir/file'), 'file');
  execFileSync('mkfifo', [at('fifo')]);
  symlinkSync('file', at('link-to-file'));
  symlinkSync(`${gateway.directory}/outside`, at('link-out'));
  symlinkSync('dir', at('link-to-dir'));
  symlinkSync('nowhere', at('dangling'));
  symlinkSync('loop', at('loop'));
  listening = createServer().listen(at('socket'));
});
afterAll(async () => {
  listening.close();
  await gateway.stop();
});

const verbsOn = (name: string): Record<string, () => Promise<Answer>> => {
  const { client } = gateway;
  return {
    GET: () => client.get(name),
    HEAD: () => client.send('HEAD', `/v1/files/${name}`),
    PUT: () => client.put(name, 'x'),
    'PUT creating': () => client.put(name, 'x', { 'if-none-match': '*' }),
    PATCH: () => client.patch(name, 'bytes=0-0', 'x'),
    append: () => client.patch(name, 'append', 'x'),
    DELETE: () => client.delete(name),
    mkdir: () => client.put(`${name}/`, ''),
    rmdir: () => client.delete(`${name}/`),
    'MOVE from': () => client.post('/v1/moves', { from: name, to: 'v/target' }),
    'MOVE to': () => client.post('/v1/moves', { from: 'v/file', to: name, overwrite: true }),
    'COPY from': () => client.post('/v1/copies', { from: name, to: 'v/target' }),
    'COPY to': () => client.post('/v1/copies', { from: 'v/file', to: name, overwrite: true }),
    list: () => client.get(`${name}/`),
  };
};

describe('a special file or a link is refused at once by every verb, and stays as it is', () => {
  it.each([
    ['fifo', 'special_file'],
    ['socket', 'special_file'],
    ['link-to-file', 'symbolic_link'],
    ['link-to-dir', 'symbolic_link'],
    ['link-out', 'symbolic_link'],
    ['dangling', 'symbolic_link'],
    ['loop', 'symbolic_link'],
    ['link-out/file', 'symbolic_link'],
    ['link-to-dir/file', 'symbolic_link'],
    ['link-out/new', 'symbolic_link'],
    ['dangling/new', 'symbolic_link'],
    ['link-to-dir/sub/new', 'symbolic_link'],
    ['loop/new', 'symbolic_link'],
  ])('%s: 409 %s', async (name, code) => {
    const before = await quietSnapshot(gateway.path('v'));
    for (const [verb, run] of Object.entries(verbsOn(`v/${name}`))) {
      const answer = await run();
      const listed = verb === 'list' && code === 'special_file' ? 'not_a_directory' : code;
      expect([verb, verb === 'HEAD' ? answer.status : verdictOf(answer)]).toEqual([verb, verb === 'HEAD' ? 409 : `409 ${listed}`]);
    }
    expect(volumeSnapshot(gateway.path('v'))).toEqual(before);
    expect(readFileSync(`${gateway.directory}/outside/file`, 'utf8')).toBe('outside');
  });

  it('below a FIFO or a file there is nothing: not_a_directory', async () => {
    for (const name of ['v/fifo/x', 'v/file/x', 'v/file/x/y']) {
      for (const answer of await Promise.all([gateway.client.put(name, 'x'), gateway.client.delete(name), gateway.client.get(name)]))
        expect(verdictOf(answer)).toBe('409 not_a_directory');
    }
  });

  it('a device is not opened, whatever it would do', async () => {
    execFileSync('mknod', [gateway.path('v/full-device'), 'c', '1', '7']);
    expect(verdictOf(await gateway.client.get('v/full-device'))).toBe('409 special_file');
    expect(verdictOf(await gateway.client.put('v/full-device', 'x'))).toBe('409 special_file');
  });

  it('a listing shows them for what they are', async () => {
    const { entries } = jsonOf<{ entries: { name: string; type: string; size_bytes: number | null }[] }>(await gateway.client.get('v/'));
    const kinds = Object.fromEntries(entries.map(({ name, type }) => [name, type]));
    expect(kinds).toMatchObject({
      file: 'file',
      dir: 'directory',
      fifo: 'special',
      socket: 'special',
      'link-to-file': 'symbolic_link',
      dangling: 'symbolic_link',
    });
    expect(kinds).not.toHaveProperty('.fencegate');
    expect(entries.filter(({ type, size_bytes: size }) => (type === 'file') !== (size !== null))).toEqual([]);
  });
});

describe('files and directories are told apart', () => {
  it.each([
    ['GET of a directory', () => gateway.client.get('v/dir'), '409 is_a_directory'],
    ['PUT onto a directory', () => gateway.client.put('v/dir', 'x'), '409 is_a_directory'],
    ['append to a directory', () => gateway.client.patch('v/dir', 'append', 'x'), '409 is_a_directory'],
    ['DELETE of a directory without its slash', () => gateway.client.delete('v/dir'), '409 is_a_directory'],
    ['DELETE of a file with a slash', () => gateway.client.delete('v/file/'), '409 not_a_directory'],
    ['DELETE of a directory that is not empty', () => gateway.client.delete('v/dir/'), '409 directory_not_empty'],
    ['listing of a file', () => gateway.client.get('v/file/'), '409 not_a_directory'],
    ['making a directory where a file is', () => gateway.client.put('v/file/', ''), '409 already_exists'],
    ['MOVE of a directory', () => gateway.client.post('/v1/moves', { from: 'v/dir', to: 'v/moved' }), '409 is_a_directory'],
    ['MOVE onto a directory', () => gateway.client.post('/v1/moves', { from: 'v/file', to: 'v/dir', overwrite: true }), '409 is_a_directory'],
    ['COPY of a directory', () => gateway.client.post('/v1/copies', { from: 'v/dir', to: 'v/copied' }), '409 is_a_directory'],
    ['a directory with a body', () => gateway.client.put('v/made/', 'x'), '400 invalid_request'],
    ['DELETE of the root', () => gateway.client.delete('v/'), '400 invalid_path'],
    ['making the root', () => gateway.client.put('v/', ''), '400 invalid_path'],
    ['DELETE of what is not there', () => gateway.client.delete('v/absent'), '404 not_found'],
    ['DELETE of a directory that is not there', () => gateway.client.delete('v/absent/'), '404 not_found'],
    ['listing of what is not there', () => gateway.client.get('v/absent/'), '404 not_found'],
  ])('%s', async (_what, run, verdict) => {
    const before = await quietSnapshot(gateway.path('v'));
    expect(verdictOf(await run())).toBe(verdict);
    expect(volumeSnapshot(gateway.path('v'))).toEqual(before);
  });

  it('a directory is made (201), is there (204), goes when empty (204); each answer has token and operation', async () => {
    const answers = [
      await gateway.client.put('v/new/sub/', ''),
      await gateway.client.put('v/new/sub/', ''),
      await gateway.client.delete('v/new/sub/'),
      await gateway.client.delete('v/new/'),
    ];
    expect(answers.map(({ status }) => status)).toEqual([201, 204, 204, 204]);
    for (const { headers } of answers)
      expect(headers).toMatchObject({ 'x-fencing-token': expect.stringMatching(/^\d+$/), 'x-operation-id': expect.stringMatching(/^\S+$/) });
    expect((await gateway.client.audit({ path: 'new/sub', order: 'asc' })).map(({ action, status }) => [action, status])).toEqual([
      ['mkdir', 201],
      ['mkdir', 204],
      ['delete', 204],
    ]);
  });

  it('B23: a foreign .nfs file inside keeps a directory, and the detail says why', async () => {
    await gateway.client.put('v/silly/', '');
    writeFileSync(gateway.path('v/silly/.nfs00000000deadbeef'), 'open elsewhere');
    const answer = await gateway.client.delete('v/silly/');
    expect(verdictOf(answer)).toBe('409 directory_not_empty');
    expect(jsonOf<{ detail: string }>(answer).detail).toMatch(/nfs/i);
    expect(jsonOf(await gateway.client.get('v/silly/'))).toEqual({ entries: [], next_cursor: null });
  });
});

describe('F17: a file with several names', () => {
  const twins = (volume: string, name: string): (() => [string, string]) => {
    const [a, b] = [gateway.path(`${volume}/${name}`), gateway.path(`${volume}/${name}-twin`)];
    writeFileSync(a, 'shared');
    linkSync(a, b);
    return () => [readFileSync(a, 'utf8'), readFileSync(b, 'utf8')];
  };

  it('PUT splits it: the other name keeps the old bytes', async () => {
    const contents = twins('v', 'put');
    expect((await gateway.client.put('v/put', 'new')).status).toBe(200);
    expect(contents()).toEqual(['new', 'shared']);
  });

  it('range writes and appends are refused', async () => {
    const contents = twins('v', 'patch');
    for (const range of ['bytes=0-0', 'bytes=0-', 'append'])
      expect(verdictOf(await gateway.client.patch('v/patch', range, 'x'))).toBe('409 multiple_links');
    expect(contents()).toEqual(['shared', 'shared']);
  });

  it('hard_links: split lets them, and splits', async () => {
    const [ranges, appends] = [twins('split', 'range'), twins('split', 'append')];
    expect((await gateway.client.patch('split/range', 'bytes=0-0', 'S')).status).toBe(200);
    expect((await gateway.client.patch('split/append', 'append', '!')).status).toBe(200);
    expect([ranges(), appends()]).toEqual([
      ['Shared', 'shared'],
      ['shared!', 'shared'],
    ]);
  });

  it('MOVE of one name onto the other is the same resource: nothing happens, and says so', async () => {
    const contents = twins('v', 'move');
    expect(verdictOf(await gateway.client.post('/v1/moves', { from: 'v/move', to: 'v/move-twin', overwrite: true }))).toBe('409 same_resource');
    expect(contents()).toEqual(['shared', 'shared']);
  });

  it('DELETE takes one name; the other stays', async () => {
    twins('v', 'delete');
    expect((await gateway.client.delete('v/delete')).status).toBe(204);
    expect(readFileSync(gateway.path('v/delete-twin'), 'utf8')).toBe('shared');
  });
});

describe('F27: what a replace must not lose', () => {
  it('mode and owner of the file stay, by PUT and by PATCH', async () => {
    for (const [name, write] of [
      ['v/rights-put', () => gateway.client.put('v/rights-put', 'new')],
      ['v/rights-patch', () => gateway.client.patch('v/rights-patch', 'bytes=0-', 'new')],
      ['v/rights-append', () => gateway.client.patch('v/rights-append', 'append', 'new')],
      ['inplace/rights', () => gateway.client.patch('inplace/rights', 'bytes=0-', 'new')],
      ['v/rights-copy', () => gateway.client.post('/v1/copies', { from: 'v/file', to: 'v/rights-copy', overwrite: true })],
    ] as const) {
      writeFileSync(gateway.path(name), 'old');
      chownSync(gateway.path(name), 1_234, 4_321);
      chmodSync(gateway.path(name), 0o640);
      expect((await write()).status).toBe(200);
      const { mode, uid, gid } = statSync(gateway.path(name));
      expect([name, mode & 0o7777, uid, gid]).toEqual([name, 0o640, 1_234, 4_321]);
    }
  });

  it('its ACL and extended attributes stay, by every kind of write, but not what was about the bytes', async () => {
    for (const [name, write] of [
      ['v/kept-put', () => gateway.client.put('v/kept-put', 'new')],
      ['v/kept-patch', () => gateway.client.patch('v/kept-patch', 'bytes=0-', 'new')],
      ['v/kept-append', () => gateway.client.patch('v/kept-append', 'append', 'new')],
      ['inplace/kept', () => gateway.client.patch('inplace/kept', 'bytes=0-', 'new')],
      ['v/kept-copy', () => gateway.client.post('/v1/copies', { from: 'v/file', to: 'v/kept-copy', overwrite: true })],
      ['split/kept-split', () => gateway.client.put('split/kept-split', 'new')],
    ] as const) {
      const path = gateway.path(name);
      writeFileSync(path, 'old');
      chownSync(path, 1_234, 4_321);
      setAttribute(path, 'user.owner', 'finance');
      setAttribute(path, 'user.empty', '');
      setAttribute(path, 'trusted.backup', Buffer.alloc(300, 7));
      setAttribute(path, 'system.posix_acl_access', aclWith(5_678));
      if (name.startsWith('split/')) linkSync(path, `${path}-twin`);
      const before = rightsOf(path);
      expect([name, (await write()).status]).toEqual([name, 200]);
      expect([name, rightsOf(path)]).toEqual([name, before]);
    }
  });

  it('with attributes: drop mode and owner stay and nothing else, and a new file has no ACL of its directory; none of that counts as lost', async () => {
    const path = gateway.path('bare/kept');
    writeFileSync(path, 'old');
    chownSync(path, 1_234, 4_321);
    chmodSync(path, 0o640);
    setAttribute(path, 'user.owner', 'finance');
    mkdirSync(gateway.path('bare/dir'));
    setAttribute(gateway.path('bare/dir'), 'system.posix_acl_default', aclWith(5_678));
    for (const [name, status] of [
      ['bare/kept', 200],
      ['bare/dir/new', 201],
    ] as const)
      expect((await gateway.client.put(name, 'new')).status).toBe(status);
    expect(rightsOf(path)).toEqual({ mode: '640', uid: 1_234, gid: 4_321, attributes: {} });
    expect(rightsOf(gateway.path('bare/dir/new'))).toMatchObject({ attributes: {} });
    const metrics = textOf(await gateway.client.send('GET', '/metrics'));
    for (const volume of ['v', 'bare']) expect(metrics).toContain(`fencegate_attributes_not_carried_total{volume="${volume}"} 0`);
  });

  it('a capability that the old bytes were trusted with is not given to new ones', async () => {
    const path = gateway.path('v/trusted-program');
    writeFileSync(path, 'old');
    // cap_net_bind_service=ep, as setcap stores it.
    setAttribute(path, 'security.capability', Buffer.from('0100000200040000000000000000000000000000', 'hex'));
    expect((await gateway.client.put('v/trusted-program', 'new')).status).toBe(200);
    expect(rightsOf(path)).toMatchObject({ attributes: {} });
  });

  it('a new file has what the kernel gives to one that is made in its directory: default ACL and group', async () => {
    const directory = gateway.path('v/shared-by-a-team');
    mkdirSync(directory);
    chownSync(directory, 0, 4_321);
    chmodSync(directory, 0o2775);
    setAttribute(directory, 'system.posix_acl_default', aclWith(5_678));
    writeFileSync(`${directory}/by-hand`, 'x');
    const upload = new FormData();
    upload.append('file', new Blob(['x']), 'by-upload');
    for (const answer of await Promise.all([
      gateway.client.put('v/shared-by-a-team/by-put', 'x'),
      gateway.client.patch('v/shared-by-a-team/by-append', 'append', 'x'),
      fetch(`${gateway.url}/v1/files/v/shared-by-a-team/`, { method: 'POST', body: upload }),
    ]))
      expect(answer.status).toBe(201);
    for (const name of ['by-put', 'by-append', 'by-upload'])
      expect([name, rightsOf(`${directory}/${name}`)]).toEqual([name, rightsOf(`${directory}/by-hand`)]);
    mkdirSync(`${directory}/below-by-hand`);
    writeFileSync(`${directory}/below-by-hand/file`, 'x');
    expect((await gateway.client.put('v/shared-by-a-team/below-by-put/file', 'x')).status).toBe(201);
    expect(rightsOf(`${directory}/below-by-put/file`)).toEqual(rightsOf(`${directory}/below-by-hand/file`));
  });

  it('a file that nobody may write is not replaced, changed, moved or written over', async () => {
    writeFileSync(gateway.path('v/sealed'), 'sealed');
    chmodSync(gateway.path('v/sealed'), 0o444);
    for (const answer of await Promise.all([
      gateway.client.put('v/sealed', 'x'),
      gateway.client.patch('v/sealed', 'append', 'x'),
      gateway.client.patch('v/sealed', 'bytes=0-0', 'x'),
      gateway.client.post('/v1/copies', { from: 'v/file', to: 'v/sealed', overwrite: true }),
      gateway.client.post('/v1/moves', { from: 'v/file', to: 'v/sealed', overwrite: true }),
    ]))
      expect(verdictOf(answer)).toBe('403 forbidden');
    expect(textOf(await gateway.client.get('v/sealed'))).toBe('sealed');
  });
});

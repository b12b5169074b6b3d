import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cannotFold, type FoldingMount, mountFolding } from '../support/folding-mount.ts';
import { jsonOf, textOf, verdictOf } from '../support/gateway-client.ts';
import { bindMount, cannotMount, type Mounted, mountTmpfs, run } from '../support/mounted.ts';
import { describeWhere } from '../support/needs.ts';
import { quietSnapshot, volumeSnapshot } from '../support/volume-snapshot.ts';
import { bearerOf, principalsFile, startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** Volumes on file systems with ways of their own. */

describeWhere(cannotFold, 'a volume that folds names', () => {
  let mount: FoldingMount;
  let gateway: VolumesGateway;
  beforeAll(async () => {
    mount = await mountFolding();
    gateway = await startVolumes({ volumes: { v: { path: mount.path }, plain: {} } });
    await gateway.client.put('v/secret', 'secret');
    await gateway.client.put('v/dir/file', 'file');
  });
  afterAll(async () => {
    await gateway.stop();
    await mount.unmount();
  });

  it('B32: another spelling of a name that is there is 409 for every verb, names the stored one, and changes nothing', async () => {
    const { client } = gateway;
    const before = await quietSnapshot(mount.path);
    const form = {
      headers: { 'content-type': 'multipart/form-data; boundary=b' },
      body: '--b\r\nContent-Disposition: form-data; name="f"; filename="SECRET"\r\n\r\nx\r\n--b--\r\n',
    };
    const answers = [
      await client.put('v/SECRET', 'x'),
      await client.put('v/Secret', 'x', { 'if-none-match': '*' }),
      await client.get('v/SECRET'),
      await client.patch('v/SECRET', 'append', 'x'),
      await client.patch('v/SECRET', 'bytes=0-0', 'x'),
      await client.delete('v/SECRET'),
      await client.put('v/SECRET/', ''),
      await client.put('v/DIR/new', 'x'),
      await client.get('v/DIR/'),
      await client.delete('v/DIR/'),
      await client.put('v/dir/FILE', 'x'),
      await client.send('POST', '/v1/files/v/', form),
      await client.post('/v1/moves', { from: 'v/SECRET', to: 'v/new' }),
      await client.post('/v1/moves', { from: 'v/dir/file', to: 'v/SECRET', overwrite: true }),
      await client.post('/v1/copies', { from: 'v/SECRET', to: 'v/new' }),
      await client.post('/v1/copies', { from: 'v/dir/file', to: 'v/SECRET', overwrite: true }),
    ];
    for (const [i, answer] of answers.entries()) expect([i, verdictOf(answer)]).toEqual([i, '409 name_alias']);
    expect(jsonOf(answers[0] ?? { bytes: Buffer.alloc(0) })).toMatchObject({ stored_name: 'secret' });
    expect(volumeSnapshot(mount.path)).toEqual(before);
    expect(await client.audit({ path: 'SECRET', action: 'put' })).toMatchObject([{ outcome: 'rejected', code: 'name_alias', status: 409 }]);
  });

  it('B32: one file has one fence: the lease of one spelling is that of all, and so is its mark', async () => {
    const { client } = gateway;
    const held = await client.lease('v/Ledger.csv');
    expect(verdictOf(await client.put('v/LEDGER.CSV', 'x', { 'x-lock-wait-ms': '0' }))).toBe('423 resource_locked');
    expect(verdictOf(await client.post('/v1/leases', { resource: 'v/ledger.csv' }))).toBe('409 lock_not_acquired');
    expect((await client.put('v/ledger.csv', 'mine', { 'x-fencing-token': held.fencing_token })).status).toBe(201);
    await client.release(held);
    await client.release(await client.lease('v/LEDGER.csv'));
    expect(verdictOf(await client.put('v/ledger.csv', 'late', { 'x-fencing-token': held.fencing_token }))).toBe('412 stale_token');
    expect(jsonOf(await client.send('GET', '/v1/admin/fences/v/lEDGER.csv'))).toMatchObject({
      ever_named: true,
      high_water_mark: expect.any(String),
    });
  });

  it('B32: two spellings in one request are one name', async () => {
    const { client } = gateway;
    const part = (name: string): string => `--b\r\nContent-Disposition: form-data; name="f"; filename="${name}"\r\n\r\nx\r\n`;
    expect(
      verdictOf(
        await client.send('POST', '/v1/files/v/', {
          headers: { 'content-type': 'multipart/form-data; boundary=b' },
          body: `${part('Twice')}${part('tWICE')}--b--\r\n`,
        }),
      ),
    ).toBe('400 invalid_path');
    for (const target of ['/v1/moves', '/v1/copies'])
      expect(verdictOf(await client.post(target, { from: 'v/secret', to: 'v/SECRET' }))).toBe('409 same_resource');
    expect(verdictOf(await client.post('/v1/leases', { resources: ['v/one', 'v/ONE'] }))).toBe('400 invalid_request');
    expect(verdictOf(await client.put('v/e\u0301', 'x'))).toBe('201');
    expect(verdictOf(await client.put('v/\u00e9', 'x'))).toBe('409 name_alias');
  });

  it('works for everything else: every kind of write, reads, listings', async () => {
    const { client } = gateway;
    expect((await client.put('v/work/a', '0123456789')).status).toBe(201);
    expect((await client.patch('v/work/a', 'bytes=0-1', 'ab')).status).toBe(200);
    expect((await client.patch('v/work/a', 'append', '!')).status).toBe(200);
    expect(textOf(await client.get('v/work/a'))).toBe('ab23456789!');
    expect((await client.put('v/work/b', 'x', { 'if-none-match': '*' })).status).toBe(201);
    expect(verdictOf(await client.put('v/work/b', 'x', { 'if-none-match': '*' }))).toBe('412 precondition_failed');
    expect((await client.post('/v1/moves', { from: 'v/work/a', to: 'v/work/b', overwrite: true })).status).toBe(200);
    expect((await client.post('/v1/copies', { from: 'v/work/b', to: 'v/work/c' })).status).toBe(201);
    expect(jsonOf<{ entries: { name: string }[] }>(await client.get('v/work/')).entries.map(({ name }) => name)).toEqual(['b', 'c']);
    for (const name of ['v/work/b', 'v/work/c', 'v/work/']) expect((await client.delete(name)).status).toBe(204);
  });

  it('B32: a scope is not got around by another spelling', async () => {
    const guarded = await startVolumes({ auth: principalsFile([{ name: 'clerk', roles: ['reader', 'writer'], scopes: ['v/in'] }]) });
    for (const name of ['v/IN/a', 'v/In/a', 'v/iN'])
      expect(verdictOf(await guarded.client.as(bearerOf('clerk')).put(name, 'x'))).toBe('403 forbidden');
    await guarded.stop();
  });

  it('B6: when it stops to answer, a condition is never taken as met: 503, and the other volume goes on', async () => {
    const { client } = gateway;
    await client.put('plain/a', 'x');
    await mount.die();
    for (const answer of [
      await client.put('v/absent', 'x', { 'if-none-match': '*' }),
      await client.put('v/secret', 'x', { 'if-match': '*' }),
      await client.put('v/absent', 'x'),
      await client.patch('v/secret', 'append', 'x'),
      await client.delete('v/secret'),
      await client.post('/v1/copies', { from: 'plain/a', to: 'v/a' }),
      await client.get('v/secret'),
      await client.get('v/'),
    ])
      expect([verdictOf(answer), Number(answer.headers['retry-after']) >= 1]).toEqual(['503 volume_unavailable', true]);
    expect((await client.put('plain/goes-on', 'x')).status).toBe(201);
    expect((await client.send('GET', '/healthz')).status).toBe(200);
  });
});

describeWhere(cannotMount, 'a volume on another device', () => {
  let mount: Mounted;
  let gateway: VolumesGateway;
  beforeAll(async () => {
    mount = mountTmpfs('size=16m');
    gateway = await startVolumes({ volumes: { v: {}, apart: { path: mount.path } } });
  });
  afterAll(async () => {
    await gateway.stop();
    mount.unmount();
  });

  it('B20: than the data and the temporary directory is written like any other: what is staged lies on the volume itself', async () => {
    const { client } = gateway;
    expect((await client.put('apart/a/b', 'one')).status).toBe(201);
    expect((await client.post('/v1/moves', { from: 'apart/a/b', to: 'apart/c' })).status).toBe(201);
    expect((await client.post('/v1/copies', { from: 'apart/c', to: 'v/from-apart' })).status).toBe(201);
    expect((await client.post('/v1/copies', { from: 'v/from-apart', to: 'apart/back' })).status).toBe(201);
    expect(verdictOf(await client.post('/v1/moves', { from: 'v/from-apart', to: 'apart/moved' }))).toBe('409 cross_volume');
    expect(
      readdirSync(mount.path)
        .filter((name) => name !== '.fencegate')
        .sort(),
    ).toEqual(['a', 'back', 'c']);
  });

  it('B20: mounted below a volume it is another volume: 409, never a copy in place of a rename', async () => {
    const below = gateway.path('v/mounted');
    mkdirSync(below);
    const inner = bindMount(mount.path, below);
    try {
      writeFileSync(`${mount.path}/theirs`, 'theirs');
      for (const answer of [
        await gateway.client.put('v/mounted/new', 'x'),
        await gateway.client.put('v/mounted/theirs', 'x'),
        await gateway.client.delete('v/mounted/theirs'),
        await gateway.client.patch('v/mounted/theirs', 'append', 'x'),
        await gateway.client.post('/v1/moves', { from: 'v/from-apart', to: 'v/mounted/x' }),
      ])
        expect(verdictOf(answer)).toBe('409 cross_volume');
      expect(readFileSync(`${mount.path}/theirs`, 'utf8')).toBe('theirs');
    } finally {
      inner.unmount();
    }
  });

  it('F19: nor is a part of the volume that is mounted in it once more: a file has one name and one fence', async () => {
    for (const name of ['real', 'alias']) mkdirSync(gateway.path(`v/${name}`));
    await gateway.client.put('v/real/f', 'base');
    const alias = bindMount(gateway.path('v/real'), gateway.path('v/alias'));
    try {
      for (const answer of [
        await gateway.client.patch('v/alias/f', 'append', 'x'),
        await gateway.client.patch('v/alias/f', 'bytes=0-0', 'x'),
        await gateway.client.put('v/alias/f', 'x'),
        await gateway.client.put('v/alias/made/', ''),
        await gateway.client.delete('v/alias/f'),
      ])
        expect(verdictOf(answer)).toBe('409 cross_volume');
      expect(readFileSync(gateway.path('v/real/f'), 'utf8')).toBe('base');
      expect((await gateway.client.patch('v/real/f', 'append', '!')).status).toBe(200);
    } finally {
      alias.unmount();
    }
    await gateway.client.put('v/again', '');
    run('mount', ['--bind', gateway.path('v/real/f'), gateway.path('v/again')]);
    try {
      expect(verdictOf(await gateway.client.patch('v/again', 'append', 'x'))).toBe('409 cross_volume');
      expect(readFileSync(gateway.path('v/real/f'), 'utf8')).toBe('base!');
    } finally {
      run('umount', [gateway.path('v/again')]);
    }
  });
});

describe('names on a volume that does not fold them', () => {
  it('are as many as there are spellings, each with a fence of its own', async () => {
    const gateway = await startVolumes();
    const spellings = ['v/Case', 'v/case', 'v/\u00e9', 'v/e\u0301', 'v/ﬁ', 'v/fi'];
    for (const name of spellings) {
      await gateway.client.lease(name);
      expect(verdictOf(await gateway.client.put(name, name, { 'x-lock-wait-ms': '0' }))).toBe('423 resource_locked');
    }
    expect(
      new Set(
        await Promise.all(
          spellings.map(
            async (name) =>
              jsonOf(await gateway.client.send('GET', `/v1/admin/fences/${name.split('/').map(encodeURIComponent).join('/')}`))['high_water_mark'],
          ),
        ),
      ),
    ).toHaveProperty('size', spellings.length);
    await gateway.stop();
  });
});

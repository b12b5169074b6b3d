import { closeSync, mkdirSync, openSync, readdirSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { removeDirectory } from '../support/gateway-settings.ts';
import { get, post, put, send } from '../support/http-client.ts';
import { SECOND_CLIENT } from '../support/nfs-control.ts';
import { VOLUME_BASE } from '../support/volume-base.ts';
import { volumesOpen } from '../support/volumes-open.ts';

/** What an NFS client remembers of names is out of date for up to half a minute; what is decided by it would be wrong (trap X12). */

let gateway: TestGateway;
let elsewhere: string;

beforeAll(async () => {
  gateway = await startGateway();
  await volumesOpen(gateway.url);
  elsewhere = gateway.volume.replace(VOLUME_BASE, SECOND_CLIENT);
  readdirSync(elsewhere);
});
afterAll(async () => {
  await gateway.stop();
  await removeDirectory(gateway.directory);
});

const entriesOf = async (directory: string): Promise<unknown[]> => (await get(gateway.url, `/v1/files/v/${directory}`)).json['entries'] as unknown[];

describe('a name that this client has seen as missing and another client has made since', () => {
  it('If-None-Match: * is refused, and the file stays as it was', async () => {
    expect((await get(gateway.url, '/v1/files/v/made.txt')).status).toBe(404);
    writeFileSync(join(elsewhere, 'made.txt'), 'made elsewhere');
    const refused = await put(gateway.url, 'v/made.txt', 'must not replace', { 'if-none-match': '*' });
    expect([refused.status, refused.json['code']]).toEqual([412, 'precondition_failed']);
    expect((await put(gateway.url, 'v/made.txt', 'nor now', { 'if-none-match': '*' })).status).toBe(412);
    expect((await get(gateway.url, '/v1/files/v/made.txt')).text).toBe('made elsewhere');
  });

  it('a move that must not overwrite does not, and the file to move stays', async () => {
    expect((await put(gateway.url, 'v/from.txt', 'to be moved')).status).toBe(201);
    expect((await get(gateway.url, '/v1/files/v/to.txt')).status).toBe(404);
    writeFileSync(join(elsewhere, 'to.txt'), 'made elsewhere');
    const refused = await post(gateway.url, '/v1/moves', { from: 'v/from.txt', to: 'v/to.txt', overwrite: false });
    expect([refused.status, refused.json['code']]).toEqual([409, 'already_exists']);
    expect((await get(gateway.url, '/v1/files/v/to.txt')).text).toBe('made elsewhere');
    expect((await get(gateway.url, '/v1/files/v/from.txt')).text).toBe('to be moved');
  });

  it('it is served and listed at once', async () => {
    expect((await get(gateway.url, '/v1/files/v/late.txt')).status).toBe(404);
    expect((await get(gateway.url, '/v1/files/v/late-directory/')).status).toBe(404);
    writeFileSync(join(elsewhere, 'late.txt'), 'made elsewhere');
    mkdirSync(join(elsewhere, 'late-directory'));
    expect((await get(gateway.url, '/v1/files/v/late.txt')).text).toBe('made elsewhere');
    expect((await get(gateway.url, '/v1/files/v/late-directory/')).status).toBe(200);
    expect(JSON.stringify(await entriesOf(''))).toContain('"late.txt"');
  });

  it('a copy that must not overwrite does not', async () => {
    expect((await put(gateway.url, 'v/from-copy.txt', 'to be copied')).status).toBe(201);
    expect((await get(gateway.url, '/v1/files/v/copied.txt')).status).toBe(404);
    writeFileSync(join(elsewhere, 'copied.txt'), 'made elsewhere');
    const refused = await post(gateway.url, '/v1/copies', { from: 'v/from-copy.txt', to: 'v/copied.txt', overwrite: false });
    expect([refused.status, refused.json['code']]).toEqual([409, 'already_exists']);
    expect((await get(gateway.url, '/v1/files/v/copied.txt')).text).toBe('made elsewhere');
  });
});

describe('what an NFS client keeps of a removed file that is still open', () => {
  it('B23, X11: is not listed, keeps a directory from being removed, and the refusal says why; once closed the directory goes', async () => {
    await put(gateway.url, 'v/kept/open.txt', 'open');
    const path = join(gateway.volume, 'kept', 'open.txt');
    const held = openSync(path, 'r');
    try {
      unlinkSync(path);
      expect(readdirSync(join(gateway.volume, 'kept'))).toEqual([expect.stringMatching(/^\.nfs/)]);
      expect(await entriesOf('kept/')).toEqual([]);
      const refused = await send(gateway.url, { method: 'DELETE', path: '/v1/files/v/kept/' });
      expect([refused.status, refused.json['code'], refused.json['detail']]).toEqual([409, 'directory_not_empty', expect.stringContaining('.nfs')]);
    } finally {
      closeSync(held);
    }
    expect((await send(gateway.url, { method: 'DELETE', path: '/v1/files/v/kept/' })).status).toBe(204);
  });

  it('B23: a DELETE through the gateway leaves nothing in the directory, also with a reader of the file, so it can be removed at once', async () => {
    await put(gateway.url, 'v/read/open.txt', 'open');
    const held = openSync(join(gateway.volume, 'read', 'open.txt'), 'r');
    try {
      expect((await send(gateway.url, { method: 'DELETE', path: '/v1/files/v/read/open.txt' })).status).toBe(204);
      expect((await send(gateway.url, { method: 'DELETE', path: '/v1/files/v/read/' })).status).toBe(204);
    } finally {
      closeSync(held);
    }
  });
});

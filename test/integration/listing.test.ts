import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { jsonOf, textOf, verdictOf } from '../support/gateway-client.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

interface Page {
  readonly entries: readonly {
    readonly name: string | null;
    readonly name_base64: string | null;
    readonly type: string;
    readonly size_bytes: number | null;
    readonly modified_at: string | null;
  }[];
  readonly next_cursor: string | null;
}

let gateway: VolumesGateway;
beforeAll(async () => {
  gateway = await startVolumes();
});
afterAll(() => gateway.stop());

const page = async (name: string, query: Record<string, string | number> = {}): Promise<Page> =>
  jsonOf<Page>(await gateway.client.send('GET', `/v1/files/${name}`, { query }));

describe('a listing', () => {
  it('has name, type, size and time of each entry, and null for what does not apply', async () => {
    await gateway.client.put('v/shape/file', '12345');
    await gateway.client.put('v/shape/sub/', '');
    expect(await page('v/shape/')).toEqual({
      entries: [
        {
          name: 'file',
          name_base64: null,
          type: 'file',
          size_bytes: 5,
          modified_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        },
        { name: 'sub', name_base64: null, type: 'directory', size_bytes: null, modified_at: expect.any(String) },
      ],
      next_cursor: null,
    });
    expect(await page('v/shape/sub/')).toEqual({ entries: [], next_cursor: null });
  });

  it('comes in pages that together have every name once, in one order, also while names come and go', async () => {
    await gateway.client.put('v/many/', '');
    const names = Array.from({ length: 100 }, (_, i) => `n${String(i).padStart(3, '0')}`);
    for (const name of names) writeFileSync(gateway.path(`v/many/${name}`), '');
    const seen: (string | null)[] = [];
    let cursor: string | null = null;
    do {
      const { entries, next_cursor: next }: Page = await page('v/many/', cursor === null ? { limit: 7 } : { limit: 7, cursor });
      expect(entries.length).toBeLessThanOrEqual(7);
      seen.push(...entries.map(({ name }) => name));
      cursor = next;
      if (seen.length === 14) {
        rmSync(gateway.path('v/many/n013'));
        writeFileSync(gateway.path('v/many/a-late-one'), '');
        writeFileSync(gateway.path('v/many/n0505'), '');
      }
    } while (cursor !== null);
    expect(seen).toEqual([...names.slice(0, 51), 'n0505', ...names.slice(51)]);
  });

  it('gives names that are not UTF-8 as name_base64, never as something that is not there', async () => {
    await gateway.client.put('v/bytes/', '');
    const raw = [Buffer.from([0x66, 0xfc, 0x72]), Buffer.from([0xff, 0xfe]), Buffer.from([0x61, 0xed, 0xa0, 0x80])];
    for (const name of raw) writeFileSync(Buffer.concat([Buffer.from(`${gateway.path('v/bytes')}/`), name]), 'x');
    const { entries } = await page('v/bytes/');
    expect(entries.map(({ name, name_base64: base64 }) => [name, base64])).toEqual(
      [...raw].sort(Buffer.compare).map((name) => [null, name.toString('base64')]),
    );
  });

  it('F22: what is listed under a name that is not UTF-8 is read by its bytes, percent-encoded, and by no other name; nothing writes it', async () => {
    const encoded = (name: Buffer): string => [...name].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
    const directory = Buffer.concat([Buffer.from(gateway.path('v/')), Buffer.from([0x64, 0xff])]);
    mkdirSync(directory);
    const file = Buffer.from([0x66, 0xfc, 0x2e, 0x7a, 0x69, 0x70]);
    writeFileSync(Buffer.concat([directory, Buffer.from('/'), file]), 'latin');
    const path = `/v1/files/v/d%FF/${encoded(file)}`;
    const read = await gateway.client.send('GET', path);
    expect([read.status, textOf(read), read.headers['content-disposition']]).toEqual([200, 'latin', expect.stringContaining('attachment')]);
    expect(jsonOf<Page>(await gateway.client.send('GET', '/v1/files/v/d%FF/')).entries.map((entry) => entry.name_base64)).toEqual([
      file.toString('base64'),
    ]);
    for (const other of ['d%FE/', 'd%FF/f%FD.zip', 'd%EF%BF%BD/', 'd%ED%B3%BF/', `d%FF/%FF${'a'.repeat(254)}`])
      expect([other, verdictOf(await gateway.client.send('GET', `/v1/files/v/${other}`))]).toEqual([other, expect.stringMatching(/^(404|400) /)]);
    for (const hidden of ['d%FF/%2F', 'd%FF/%FF%5C', 'd%FF/%FF%00', 'd%FF/%FF%2Fx', `d%FF/%FF${'a'.repeat(255)}`, 'd%FF/%F'])
      expect([hidden, verdictOf(await gateway.client.send('GET', `/v1/files/v/${hidden}`))]).toEqual([hidden, '400 invalid_path']);
    for (const method of ['PUT', 'DELETE', 'PATCH'])
      expect(verdictOf(await gateway.client.send(method, path, { body: method === 'DELETE' ? null : 'x' }))).toBe('400 invalid_path');
    expect(verdictOf(await gateway.client.post('/v1/copies', { from: 'v/d\udcff/f\udcfc.zip', to: 'v/copy' }))).toBe('400 invalid_path');
  });

  it('F11: does not show what belongs to the gateway or to an NFS client', async () => {
    await gateway.client.put('v/root-file', 'x');
    writeFileSync(gateway.path('v/.nfs0000001'), 'x');
    const names = (await page('v/')).entries.map(({ name }) => name);
    expect(names).toContain('root-file');
    expect(names.filter((name) => name?.startsWith('.'))).toEqual([]);
  });

  it.each([
    ['limit=0', '400 invalid_request'],
    ['limit=-1', '400 invalid_request'],
    ['limit=10001', '400 invalid_request'],
    ['limit=x', '400 invalid_request'],
    ['limit=1&limit=2', '400 invalid_request'],
    ['cursor=%21%21', '400 invalid_request'],
    ['cursor=', '400 invalid_request'],
    ['depth=1', '400 invalid_request'],
    ['limit=10000', '200'],
    [`cursor=${Buffer.from('../../x').toString('base64url')}`, '200'],
  ])('?%s: %s', async (query, verdict) => {
    expect(verdictOf(await gateway.client.send('GET', `/v1/files/v/many/?${query}`))).toBe(verdict);
  });

  it('HEAD of a directory has the headers and no body', async () => {
    const answer = await gateway.client.send('HEAD', '/v1/files/v/many/');
    expect([answer.status, answer.bytes.length]).toEqual([200, 0]);
  });
});

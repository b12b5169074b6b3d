import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { clientFromEnvironment, FencegateClient } from '../../src/client/index.ts';
import { clientSuite, codeOf } from '../support/client-suite.ts';

const MEBIBYTE = 1_048_576;

const lab = clientSuite({ yaml: 'volumes: { v: { path: "{dir}/v", names: any } }' });
const { client } = lab;

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

async function* chunks(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

describe('what is written', () => {
  const text = async (name: string) => (await client().get(name)).text();

  it('may be text, bytes, a local file, a stream of Node or the web, an iterator, or a function that makes one', async () => {
    const one = client();
    const local = join(lab.gateway.directory, 'local.txt');
    await writeFile(local, 'from a file');
    await one.put('v/w/text', 'grün');
    await one.put('v/w/empty', '');
    await one.put('v/w/bytes', Uint8Array.of(1, 2, 3));
    await one.put('v/w/local', { path: local });
    await one.put('v/w/node', Readable.from([Buffer.from('no'), Buffer.from('de')]));
    await one.put('v/w/web', new Blob(['web']).stream());
    await one.put('v/w/known', chunks('kno', 'wn'), { sizeBytes: 5 });
    await one.put('v/w/made', () => chunks('made'));
    expect(await text('v/w/text')).toBe('grün');
    expect(await text('v/w/empty')).toBe('');
    expect(await (await one.get('v/w/bytes')).bytes()).toEqual(Buffer.from([1, 2, 3]));
    expect(await Promise.all(['local', 'node', 'web', 'known', 'made'].map((name) => text(`v/w/${name}`)))).toEqual([
      'from a file',
      'node',
      'web',
      'known',
      'made',
    ]);
  });

  it('is not stored when a stream has another length than it promised, or fails', async () => {
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('half');
      throw new Error('the disk is gone');
    }
    await expect(client().put('v/short', chunks('abc'), { sizeBytes: 5 })).rejects.toThrow(RangeError);
    await expect(client().put('v/long', chunks('abcdef'), { sizeBytes: 5 })).rejects.toThrow(RangeError);
    await expect(client().put('v/failing', failing())).rejects.toThrow('the disk is gone');
    await expect(client().put('v/missing', { path: '/no/such/file' })).rejects.toMatchObject({ code: 'ENOENT' });
    for (const name of ['v/short', 'v/long', 'v/failing']) expect(await codeOf(client().get(name))).toBe('not_found');
  });

  it('has a name with any characters, but none that would change the meaning of a URL', async () => {
    await client().put('v/ä b/100%?#+&.txt', 'x');
    expect(await readFile(join(lab.gateway.volume, 'ä b/100%?#+&.txt'), 'utf8')).toBe('x');
    expect(await codeOf(client().put('v/../w', 'x'))).toBe('invalid_path');
    expect(await codeOf(client().put('v/./w', 'x'))).toBe('invalid_path');
    expect(await codeOf(client().put('v/\ud800', 'x'))).toBe('invalid_path');
    expect(await codeOf(client().put('v//w', 'x'))).toBe('invalid_path');
  });

  it('can be appended to, at an offset that is believed in, and changed in the middle', async () => {
    const one = client();
    await one.append('v/log', 'one\n');
    await one.append('v/log', 'two\n', { offset: 4 });
    await expect(one.append('v/log', 'three\n', { offset: 4 })).rejects.toMatchObject({ code: 'offset_mismatch', members: { expected_offset: 8 } });
    await one.writeRange('v/log', 4, 'TWO');
    expect(await text('v/log')).toBe('one\nTWO\n');
    expect(await codeOf(one.writeRange('v/log', 100, 'hole'))).toBe('range_not_satisfiable');
  });

  it('depends on conditions and digests when it is told to', async () => {
    const one = client();
    const sha256 = createHash('sha256').update('v1').digest('hex');
    const { etag, digest } = await one.put('v/cond', 'v1', { ifNoneMatch: '*', sha256 });
    expect(digest).toEqual({ 'sha-256': sha256 });
    expect(await codeOf(one.put('v/cond', 'v2', { ifNoneMatch: '*' }))).toBe('precondition_failed');
    expect(await codeOf(one.put('v/cond', 'v2', { sha256 }))).toBe('digest_mismatch');
    await one.put('v/cond', 'v2', { ifMatch: etag });
    expect(await codeOf(one.put('v/cond', 'v3', { ifMatch: etag }))).toBe('precondition_failed');
  });

  it('can be deleted, moved and copied; directories can be made', async () => {
    const one = client();
    const made = await one.makeDirectory('v/d/e');
    expect(made.operation_id).not.toBe('');
    await one.put('v/d/a', 'a');
    await one.copy('v/d/a', 'v/d/b');
    expect(await codeOf(one.copy('v/d/a', 'v/d/b'))).toBe('already_exists');
    await one.move('v/d/b', 'v/d/a', { overwrite: true });
    const { operation_id: operationId, fencing_token: token } = await one.delete('v/d/a');
    expect(await one.operation({ operationId })).toMatchObject({ action: 'delete', outcome: 'committed', fencing_token: token });
    await one.delete('v/d/e/');
    expect(await all(one.list('v/d'))).toEqual([]);
  });

  it('under a key of the caller is written once: the same again is told the first answer, and that it is that; another body is another request', async () => {
    const one = client();
    const local = join(lab.gateway.directory, 'same.txt');
    await writeFile(local, 'one');
    const first = await one.put('v/key/a', 'one', { idempotencyKey: 'put' });
    expect(first.idempotency_replayed).toBe(false);
    for (const same of ['one', Buffer.from('one'), { path: local }])
      expect(await client().put('v/key/a', same, { idempotencyKey: 'put' })).toEqual({ ...first, idempotency_replayed: true });
    for (const other of ['two', Buffer.from('two'), 'longer'])
      expect(await codeOf(one.put('v/key/a', other, { idempotencyKey: 'put' }))).toBe('idempotency_key_reused');
    expect(await text('v/key/a')).toBe('one');
    await one.put('v/key/b', 'b');
    const again: Readonly<Record<string, () => Promise<{ readonly idempotency_replayed: boolean }>>> = {
      append: () => one.append('v/key/a', '+', { idempotencyKey: 'k' }),
      writeRange: () => one.writeRange('v/key/a', 0, 'O', { idempotencyKey: 'range' }),
      copy: () => one.copy('v/key/b', 'v/key/c', { idempotencyKey: 'k' }),
      move: () => one.move('v/key/b', 'v/key/d', { idempotencyKey: 'k' }),
      delete: () => one.delete('v/key/d', { idempotencyKey: 'k' }),
      makeDirectory: () => one.makeDirectory('v/key/e', { idempotencyKey: 'k' }),
      upload: () =>
        one.upload(
          'v/key/',
          [
            { name: 'up', body: 'x' },
            { name: 'file', body: { path: local } },
          ],
          { idempotencyKey: 'k' },
        ),
    };
    for (const [verb, write] of Object.entries(again)) {
      expect([verb, (await write()).idempotency_replayed, (await write()).idempotency_replayed]).toEqual([verb, false, true]);
    }
    expect(await text('v/key/a')).toBe('One+');
    const otherFiles = [
      { name: 'up', body: 'y' },
      { name: 'file', body: { path: local } },
    ];
    expect(await codeOf(one.upload('v/key/', otherFiles, { idempotencyKey: 'k' }))).toBe('idempotency_key_reused');
  });

  it('is moved with the tokens of two leases', async () => {
    const one = client();
    await one.put('v/m/from', 'x');
    const [from, to] = [await one.lease('v/m/from'), await one.lease('v/m/to')];
    expect(await codeOf(from.move('v/m/from', 'v/m/to', { lockWaitMs: 0 }))).toBe('resource_locked');
    await from.move('v/m/from', 'v/m/to', { otherLease: to });
    await from.release();
    await to.release();
  });

  it('may be several files, all or nothing', async () => {
    const one = client();
    const files = [
      { name: 'a.csv', body: 'a' },
      { name: 'grün "x".csv', body: chunks('b', 'c') },
    ];
    const answer = await one.withLease(['v/many/a.csv', 'v/many/grün "x".csv'], {}, (lease) => lease.upload('v/many', files));
    expect(answer.files.map(({ resource }) => resource)).toEqual(['v/many/a.csv', 'v/many/grün "x".csv']);
    expect(await text('v/many/grün "x".csv')).toBe('bc');
    expect(await codeOf(one.upload('v/many/', [{ name: '../x', body: 'x' }]))).toMatch(/^invalid_/);
  });

  it('is told of as it goes, both ways', async () => {
    const one = client();
    const bytes = Buffer.alloc(3 * MEBIBYTE, 7);
    const sent: number[] = [];
    const received: number[] = [];
    const body = () => Readable.from([bytes.subarray(0, MEBIBYTE), bytes.subarray(MEBIBYTE)]);
    await one.put('v/big', body, { sizeBytes: bytes.length, onProgress: ({ transferredBytes }) => sent.push(transferredBytes) });
    expect(sent).toEqual([0, MEBIBYTE, 3 * MEBIBYTE]);
    const download = await one.get('v/big', { onProgress: ({ transferredBytes }) => received.push(transferredBytes) });
    const saved = join(lab.gateway.directory, 'saved');
    await download.saveTo(saved);
    expect(bytes.equals(await readFile(saved))).toBe(true);
    expect(received.at(-1)).toBe(bytes.length);
  });
});

describe('a writer who is refused', () => {
  it('sends not one byte of the body', async () => {
    const one = client({ url: lab.proxy.url });
    const stale = await one.lease('v/stale', { ttlMs: 60_000 });
    await client().breakLock('v/stale', { reason: 'test' });
    const before = lab.proxy.sentBytes;
    let opened = false;
    const body = async function* (): AsyncGenerator<Uint8Array> {
      opened = true;
      yield Buffer.alloc(MEBIBYTE);
    };
    await expect(stale.put('v/stale', body)).rejects.toMatchObject({ code: 'stale_token', status: 412, members: { presented_token: stale.token } });
    expect(opened).toBe(false);
    expect(lab.proxy.sentBytes - before).toBeLessThan(2_000);
  });

  it('R29: is told at once when the lease goes in the middle of an upload, and how far it came', async () => {
    const one = client();
    const lease = await one.lease('v/middle', { ttlMs: 6_000 });
    let sent = 0;
    const body = async function* (): AsyncGenerator<Uint8Array> {
      yield Buffer.alloc(MEBIBYTE);
      await client().breakLock('v/middle', { reason: 'test' });
      for (;;) {
        await new Promise((resolve) => setImmediate(resolve));
        yield Buffer.alloc(1_024);
      }
    };
    const outcome = lease.put('v/middle', body(), {
      onProgress: ({ transferredBytes }) => {
        sent = transferredBytes;
      },
    });
    // By the heartbeat or by the upload itself, whichever comes first.
    expect(['lease_lost', 'lease_ended', 'stale_token']).toContain(await codeOf(outcome));
    expect(sent).toBeGreaterThanOrEqual(MEBIBYTE);
    expect(await codeOf(one.get('v/middle'))).toBe('not_found');
  });

  it('R29: an upload that takes longer than the time to live goes on, because the session is kept alive', async () => {
    const lease = await client().lease('v/slow', { ttlMs: 1_000 });
    const startMs = performance.now();
    const body = async function* (): AsyncGenerator<Uint8Array> {
      while (performance.now() - startMs < 2_500) {
        await new Promise((resolve) => setTimeout(resolve, 50));
        yield Buffer.from('.');
      }
    };
    await expect(lease.put('v/slow', body())).resolves.toMatchObject({ fencing_token: lease.token });
    await lease.release();
  });

  it('stands in line no longer than it wants to without a lease', async () => {
    const lease = await client({ clientId: 'holder' }).lease('v/held');
    await expect(client().put('v/held', 'x', { lockWaitMs: 0 })).rejects.toMatchObject({
      code: 'resource_locked',
      members: { holder_client_id: 'holder' },
    });
    await lease.release();
  });
});

describe('a write that is cut off', () => {
  it('is sent again under the same key, and done once', async () => {
    const one = client({ url: lab.proxy.url });
    const lease = await one.lease('v/once');
    let cuts = 0;
    const body = async function* (): AsyncGenerator<Uint8Array> {
      yield Buffer.from('once');
      cuts += 1;
      if (cuts === 1) lab.proxy.cutOnce();
      // The end of the body comes after the cut.
      await new Promise((resolve) => setImmediate(resolve));
    };
    const written = await lease.append('v/once', body);
    expect(written.size_bytes).toBe(4);
    expect(cuts).toBeGreaterThan(1);
    expect(await (await one.get('v/once')).text()).toBe('once');
    expect(await all(client().audit({ volume: 'v', path: 'once', action: 'append', outcome: 'committed' }))).toHaveLength(1);
  });

  it('is not sent again when its stream cannot be', async () => {
    const one = client({ url: lab.proxy.url });
    const body = async function* (): AsyncGenerator<Uint8Array> {
      yield Buffer.from('half');
      lab.proxy.cutOnce();
      await new Promise((resolve) => setTimeout(resolve, 20));
      yield Buffer.from('more');
    };
    await expect(one.put('v/gone', body())).rejects.toMatchObject({ code: 'gateway_unreachable' });
  });

  it('fails with one code when there is no gateway', async () => {
    const nobody = new FencegateClient({ url: 'http://127.0.0.1:9' });
    await expect(nobody.put('v/a', 'x')).rejects.toMatchObject({ code: 'gateway_unreachable', status: null });
    await expect(nobody.lock('v/a')).rejects.toMatchObject({ code: 'gateway_unreachable' });
    const aborted = AbortSignal.abort(new Error('not wanted'));
    await expect(nobody.put('v/a', 'x', { signal: aborted })).rejects.toThrow('not wanted');
    await expect(nobody.get('v/a', { signal: aborted })).rejects.toThrow('not wanted');
  });
});

describe('a client that is closed', () => {
  it('cuts uploads, downloads and watches that are under way, and each says that it is closed', async () => {
    const other = client();
    await other.put('v/long', Buffer.alloc(8 * MEBIBYTE));
    const one = client();
    let closed: Promise<void> | undefined;
    const endless = async function* (): AsyncGenerator<Uint8Array> {
      for (;;) {
        yield Buffer.alloc(1_024);
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const uploading = codeOf(one.put('v/endless', endless));
    const download = await one.get('v/long');
    const downloading = codeOf(
      (async () => {
        for await (const _chunk of download) closed ??= one.close();
      })(),
    );
    const watching = codeOf(
      (async () => {
        for await (const _event of one.watch({ resource: 'v/watched' }, { afterSeq: 0 }));
      })(),
    );
    expect(await Promise.all([uploading, downloading, watching])).toEqual(['client_closed', 'client_closed', 'client_closed']);
    await closed;
    expect(await codeOf(other.get('v/endless'))).toBe('not_found');
  });
});

describe('what is read', () => {
  it('may be a range, or nothing when it is known already', async () => {
    const one = client();
    const { etag } = await one.put('v/read.txt', '0123456789');
    const range = await one.get('v/read.txt', { range: { start: 2, end: 4 } });
    expect(range).toMatchObject({ status: 206, contentRange: 'bytes 2-4/10', sizeBytes: 3, etag, contentType: 'text/plain' });
    expect(await range.text()).toBe('234');
    expect(await (await one.get('v/read.txt', { range: { start: 8 } })).text()).toBe('89');
    const known = await one.get('v/read.txt', { ifNoneMatch: etag });
    expect(known.status).toBe(304);
    expect(await known.text()).toBe('');
    expect(await codeOf(one.get('v/read.txt', { ifMatch: '"other"' }))).toBe('precondition_failed');
    (await one.get('v/read.txt')).cancel();
  });

  it('is listed over all pages, and so are locks and records', async () => {
    const one = client({ clientId: 'lister' });
    for (const name of ['a', 'b', 'c']) await one.put(`v/list/${name}`, name);
    const seen: (string | null)[] = [];
    for await (const { name } of one.list('v/list/')) seen.push(name);
    expect(seen.sort()).toEqual(['a', 'b', 'c']);
    const leases = [await one.lease('v/list/a'), await one.lease('v/list/b')];
    expect((await all(one.locks({ volume: 'v', state: 'held', limit: 1 }))).map(({ resource }) => resource)).toEqual(['v/list/a', 'v/list/b']);
    for (const lease of leases) await lease.release();
    const records = await all(one.audit({ volume: 'v', pathPrefix: 'list/', action: 'put', clientId: 'lister', order: 'asc', limit: 2 }));
    expect(records.map(({ path }) => path)).toEqual(['list/a', 'list/b', 'list/c']);
    expect(await one.verifyAudit()).toMatchObject({ valid: true });
    expect(await one.volumes()).toMatchObject([{ name: 'v', files: true }]);
  });
});

describe('inside fencegate exec', () => {
  it('writes go under the lease of the command, which the client gives out and does not end', async () => {
    const outer = await client().lease('v/exec.csv');
    const environment = {
      FENCEGATE_URL: lab.gateway.url,
      FENCEGATE_AUTH_TOKEN: '',
      FENCEGATE_RESOURCE: 'v/exec.csv',
      FENCEGATE_LEASE_ID: outer.leaseId,
      FENCEGATE_FENCING_TOKEN: outer.token,
    };
    const inner = clientFromEnvironment(environment);
    expect((await inner.put('v/exec.csv', 'plain')).fencing_token).toBe(outer.token);
    await inner.withLease('v/exec.csv', {}, async (lease) => {
      expect(lease.token).toBe(outer.token);
      expect(lease.remainingMs).toBeGreaterThan(0);
      await lease.append('v/exec.csv', ' and again');
    });
    expect(outer.state).toBe('held');
    expect((await client().lock('v/exec.csv')).holders).toHaveLength(1);
    await outer.release();
    expect(await codeOf(inner.put('v/exec.csv', 'late'))).toBe('lease_ended');
    expect(await codeOf(inner.lease('v/exec.csv'))).toBe('lease_lost');
    await inner.close();
  });

  it('a part of the variables is refused', () => {
    expect(() => clientFromEnvironment({ FENCEGATE_RESOURCE: 'v/a', FENCEGATE_FENCING_TOKEN: '' })).toThrow(TypeError);
  });
});

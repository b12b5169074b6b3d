import { createHash } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, jsonOf, textOf, verdictOf } from '../support/gateway-client.ts';
import { ask, head, rawVerdict } from '../support/raw-request.ts';
import { TIER } from '../support/tier.ts';
import { quietSnapshot, stagedNames, volumeSnapshot } from '../support/volume-snapshot.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** Range writes and appends, copy-on-write and in place. */

let gateway: VolumesGateway;
beforeAll(async () => {
  gateway = await startVolumes({ volumes: { v: {}, inplace: { range_writes: 'in-place' } } });
});
afterAll(() => gateway.stop());

const bytesAt = (name: string): string => readFileSync(gateway.path(name), 'utf8');
const digest = (text: string): string => `sha-256=:${createHash('sha256').update(text).digest('base64')}:`;

describe.each(['v', 'inplace'])('a range write on volume %s', (volume) => {
  const name = `${volume}/record`;
  it.each([
    ['bytes=0-2', 'XYZ', 'XYZ3456789'],
    ['bytes=3-3', 'X', '012X456789'],
    ['bytes=7-', 'XYZ', '0123456XYZ'],
    ['bytes=8-', 'WXYZ', '01234567WXYZ'],
    ['bytes=8-11', 'WXYZ', '01234567WXYZ'],
    ['bytes=10-', 'XY', '0123456789XY'],
    ['bytes=10-11', 'XY', '0123456789XY'],
    ['bytes=4-', '', '0123456789'],
  ])('%s with %j', async (range, body, result) => {
    await gateway.client.put(name, '0123456789');
    const before = (await gateway.client.get(name)).headers['etag'];
    const answer = await gateway.client.patch(name, range, body);
    expect([answer.status, bytesAt(name)]).toEqual([200, result]);
    expect(jsonOf(answer)).toMatchObject({ resource: name, size_bytes: result.length, etag: answer.headers['etag'] });
    expect(answer.headers).toMatchObject({ 'x-fencing-token': expect.any(String), 'x-operation-id': expect.any(String) });
    const got = await gateway.client.get(name);
    expect([got.headers['etag'], textOf(got)]).toEqual([answer.headers['etag'], result]);
    expect(got.headers['etag']).not.toBe(before);
    expect(await gateway.client.audit({ operation_id: answer.headers['x-operation-id'] ?? '' })).toMatchObject([
      { action: 'patch', outcome: 'committed', etag_before: before, etag_after: answer.headers['etag'], size_bytes: result.length },
    ]);
  });

  it.each([
    ['a hole', 'bytes=11-', 'x', '416 range_not_satisfiable'],
    ['a hole far out', 'bytes=999999999999-', 'x', '416 range_not_satisfiable'],
    ['fewer bytes than named', 'bytes=0-4', 'abc', '400 range_length_mismatch'],
    ['more bytes than named', 'bytes=0-1', 'abc', '400 range_length_mismatch'],
    ['no range', '', 'x', '400 invalid_request'],
    ['one backwards', 'bytes=5-2', '', '400 invalid_request'],
    ['from the end', 'bytes=-3', 'abc', '400 invalid_request'],
    ['two', 'bytes=0-0,2-2', 'ab', '400 invalid_request'],
    ['another unit', 'lines=0-0', 'x', '400 invalid_request'],
    ['a number too large', 'bytes=99999999999999999999-', 'x', '400 invalid_request'],
    ['a word', 'prepend', 'x', '400 invalid_request'],
  ])('%s is refused, and nothing is touched', async (_what, range, body, verdict) => {
    await gateway.client.put(name, '0123456789');
    const before = await quietSnapshot(gateway.path(volume));
    expect(verdictOf(await gateway.client.patch(name, range, body))).toBe(verdict);
    expect(volumeSnapshot(gateway.path(volume))).toEqual(before);
  });

  it('a chunked body is held to the length that the range names', async () => {
    await gateway.client.put(name, '0123456789');
    const request = (chunk: string): string =>
      `${head(`PATCH /v1/files/${name}`, 'X-Update-Range: bytes=0-4', 'Content-Type: application/octet-stream', 'Transfer-Encoding: chunked')}${chunk}0\r\n\r\n`;
    expect(rawVerdict(await ask(gateway.raw(), request('3\r\nabc\r\n')))).toBe('400 range_length_mismatch');
    expect(rawVerdict(await ask(gateway.raw(), request('6\r\nabcdef\r\n')))).toBe('400 range_length_mismatch');
    expect(rawVerdict(await ask(gateway.raw(), request('5\r\nabcde\r\n')))).toBe('200');
    expect(bytesAt(name)).toBe('abcde56789');
  });

  it('a range on what is not there is 404, an append makes it', async () => {
    expect(verdictOf(await gateway.client.patch(`${volume}/none`, 'bytes=0-', 'x'))).toBe('404 not_found');
    const made = await gateway.client.patch(`${volume}/appended/to/nothing`, 'append', 'first', { 'upload-offset': '0' });
    expect([made.status, bytesAt(`${volume}/appended/to/nothing`)]).toEqual([201, 'first']);
    expect((await gateway.client.get(`${volume}/appended/to/nothing`)).headers['etag']).toBe(made.headers['etag']);
  });

  it('Upload-Offset must be the size: else 409 with the right one', async () => {
    await gateway.client.put(name, '0123456789');
    for (const range of ['append', 'bytes=2-']) {
      for (const offset of ['0', '9', '11', '999999999999']) {
        const answer = await gateway.client.patch(name, range, 'x', { 'upload-offset': offset });
        expect([verdictOf(answer), jsonOf(answer)['expected_offset']]).toEqual(['409 offset_mismatch', 10]);
      }
    }
    for (const offset of ['-1', '1.0', 'ten', '', '1e1'])
      expect(verdictOf(await gateway.client.patch(name, 'append', 'x', { 'upload-offset': offset }))).toBe('400 invalid_request');
    expect((await gateway.client.patch(name, 'append', 'x', { 'upload-offset': '10' })).status).toBe(200);
  });

  it('digests: of the bytes sent and of the whole result; a wrong one changes nothing', async () => {
    await gateway.client.put(name, '0123456789');
    const write = (headers: Record<string, string>) => gateway.client.patch(name, 'bytes=0-1', 'ab', headers);
    expect(verdictOf(await write({ 'content-digest': digest('xx') }))).toBe('400 digest_mismatch');
    expect(verdictOf(await write({ 'repr-digest': digest('ab') }))).toBe('400 digest_mismatch');
    expect(bytesAt(name)).toBe('0123456789');
    expect((await write({ 'content-digest': digest('ab'), 'repr-digest': digest('ab23456789') })).status).toBe(200);
    expect(verdictOf(await gateway.client.patch(name, 'append', '!', { 'repr-digest': digest('!') }))).toBe('400 digest_mismatch');
    expect((await gateway.client.patch(name, 'append', '!', { 'repr-digest': digest('ab23456789!') })).status).toBe(200);
  });

  it('media types: the two that are named, or none', async () => {
    for (const type of ['application/x-sabredav-partialupdate', 'application/octet-stream', 'Application/Octet-Stream; x=y'])
      expect((await gateway.client.patch(name, 'bytes=0-0', 'x', { 'content-type': type })).status).toBe(200);
    for (const type of ['text/plain', 'application/json', 'multipart/form-data; boundary=x', 'nonsense'])
      expect(verdictOf(await gateway.client.patch(name, 'bytes=0-0', 'x', { 'content-type': type }))).toBe('415 unsupported_media_type');
  });

  it('conditions are judged, and again when the body has come', async () => {
    const { headers } = await gateway.client.put(name, '0123456789');
    expect(verdictOf(await gateway.client.patch(name, 'append', 'x', { 'if-match': '"other"' }))).toBe('412 precondition_failed');
    const slow = gateway.raw();
    slow.send(head(`PATCH /v1/files/${name}`, 'X-Update-Range: append', `If-Match: ${headers['etag']}`, 'Expect: 100-continue', 'Content-Length: 4'));
    await slow.until(() => slow.received.includes('100 Continue'));
    await gateway.client.put(name, 'changed');
    slow.send('late');
    expect(rawVerdict(await slow.answer())).toBe('412 precondition_failed');
    expect(bytesAt(name)).toBe('changed');
  });

  it('leaves nothing staged behind', async () => {
    await eventually(
      () => stagedNames(gateway.path(volume)),
      (names) => names.length === 0,
    );
  });
});

describe('appends', () => {
  it('B8: of six writers at once are all there exactly once, in whole records', async () => {
    const rounds = 3 * TIER.raceRounds;
    await gateway.client.put('v/log', '');
    const write = async (writer: number): Promise<void> => {
      for (let round = 0; round < rounds; round += 1) {
        expect((await gateway.client.patch('v/log', 'append', `${writer}:${round};`, { 'x-lock-wait-ms': '30000' })).status).toBe(200);
      }
    };
    await Promise.all(Array.from({ length: 6 }, (_, writer) => write(writer)));
    const records = bytesAt('v/log').split(';').slice(0, -1);
    expect(records.length).toBe(6 * rounds);
    expect(new Set(records).size).toBe(6 * rounds);
    for (let writer = 0; writer < 6; writer += 1) {
      expect(records.filter((record) => record.startsWith(`${writer}:`))).toEqual(Array.from({ length: rounds }, (_, round) => `${writer}:${round}`));
    }
  });

  it('B8: with an offset each loser learns the right one, and goes on from there', async () => {
    await gateway.client.put('v/offsets', '');
    const write = async (writer: number): Promise<void> => {
      let offset = 0;
      for (let done = 0; done < 5; ) {
        const answer = await gateway.client.patch('v/offsets', 'append', `${writer}${done};`, {
          'upload-offset': String(offset),
          'x-lock-wait-ms': '30000',
        });
        if (answer.status === 200) {
          done += 1;
          offset = Number(jsonOf(answer)['size_bytes']);
        } else {
          expect(verdictOf(answer)).toBe('409 offset_mismatch');
          offset = Number(jsonOf(answer)['expected_offset']);
        }
      }
    };
    await Promise.all([write(1), write(2), write(3), write(4)]);
    expect(bytesAt('v/offsets').split(';').slice(0, -1).sort()).toEqual(
      [1, 2, 3, 4].flatMap((writer) => [0, 1, 2, 3, 4].map((done) => `${writer}${done}`)),
    );
  });

  it('R26: a retry while the first stalls goes ahead at once, and the first is then told the offset', async () => {
    await gateway.client.put('v/stalled', 'ab');
    const first = gateway.raw();
    first.send(`${head('PATCH /v1/files/v/stalled', 'X-Update-Range: append', 'Upload-Offset: 2', 'Content-Length: 3')}c`);
    await eventually(
      () => stagedNames(gateway.path('v')),
      (names) => names.length > 0,
    );
    const retry = await gateway.client.patch('v/stalled', 'append', 'cde', { 'upload-offset': '2' });
    expect(retry.status).toBe(200);
    first.send('de');
    const late = await first.answer();
    expect([rawVerdict(late), (JSON.parse(late.body) as { expected_offset: number }).expected_offset]).toEqual(['409 offset_mismatch', 5]);
    expect(bytesAt('v/stalled')).toBe('abcde');
  });

  it('keep the inode; range writes replace it unless the volume says in-place', async () => {
    const inode = (name: string): number => statSync(gateway.path(name)).ino;
    for (const [name, range, kept] of [
      ['v/inode', 'append', true],
      ['v/inode', 'bytes=0-', false],
      ['inplace/inode', 'append', true],
      ['inplace/inode', 'bytes=0-', true],
    ] as const) {
      await gateway.client.put(name, 'old');
      const before = inode(name);
      expect((await gateway.client.patch(name, range, 'new')).status).toBe(200);
      expect([name, range, inode(name) === before]).toEqual([name, range, kept]);
    }
  });

  it('B1: cut short append nothing', async () => {
    await gateway.client.put('v/whole', 'whole');
    const cut = gateway.raw();
    cut.send(`${head('PATCH /v1/files/v/whole', 'X-Update-Range: append', 'Content-Length: 10')}half`);
    cut.socket.end();
    expect(rawVerdict(await cut.answer())).toBe('400 incomplete_body');
    expect(bytesAt('v/whole')).toBe('whole');
    expect(await gateway.client.audit({ path: 'whole', action: 'append' })).toMatchObject([{ outcome: 'aborted', code: 'incomplete_body' }]);
  });
});

describe('range_writes: in-place', () => {
  it('a reader that is in the middle of the file is cut, and never gets a mixture', async () => {
    const [old, fresh] = [Buffer.alloc(32 * 1_048_576, 'o'), Buffer.alloc(1_048_576, 'n')];
    writeFileSync(gateway.path('inplace/huge'), old);
    const reading = await gateway.client.begin('inplace/huge');
    expect((await gateway.client.patch('inplace/huge', `bytes=${old.byteLength - fresh.byteLength}-`, fresh)).status).toBe(200);
    const { bytes, whole } = await reading.rest();
    expect([whole, bytes.every((byte) => byte === 0x6f)]).toEqual([false, true]);
  });
});

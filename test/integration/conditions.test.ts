import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, textOf, verdictOf } from '../support/gateway-client.ts';
import { head, rawVerdict } from '../support/raw-request.ts';
import { TIER } from '../support/tier.ts';
import { quietSnapshot, stagedNames, volumeSnapshot } from '../support/volume-snapshot.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** Conditions and digests of writes: judged on the headers, and again inside the commit section. */

let gateway: VolumesGateway;
beforeAll(async () => {
  gateway = await startVolumes();
});
afterAll(() => gateway.stop());

const etagOf = async (name: string): Promise<string> => (await gateway.client.get(name)).headers['etag'] ?? '';
const tally = (verdicts: readonly string[]): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const verdict of verdicts) counts[verdict] = (counts[verdict] ?? 0) + 1;
  return counts;
};

describe('races', () => {
  it('B4: of 32 writers with the same If-Match exactly one succeeds, every time', async () => {
    await gateway.client.put('v/race', 'start');
    for (let round = 0; round < TIER.raceRounds; round += 1) {
      const headers = { 'if-match': await etagOf('v/race'), 'x-lock-wait-ms': '30000' };
      const answers = await Promise.all(Array.from({ length: TIER.raceClients }, (_, i) => gateway.client.put('v/race', `${round}:${i}`, headers)));
      expect(tally(answers.map(verdictOf))).toEqual({ '200': 1, '412 precondition_failed': TIER.raceClients - 1 });
      expect(textOf(await gateway.client.get('v/race'))).toBe(`${round}:${answers.findIndex(({ status }) => status === 200)}`);
    }
  });

  it('B7: of 32 that create only, exactly one does', async () => {
    for (let round = 0; round < TIER.raceRounds; round += 1) {
      const name = `v/create-${round}`;
      const answers = await Promise.all(
        Array.from({ length: TIER.raceClients }, (_, i) => gateway.client.put(name, String(i), { 'if-none-match': '*', 'x-lock-wait-ms': '30000' })),
      );
      expect(tally(answers.map(verdictOf))).toEqual({ '201': 1, '412 precondition_failed': TIER.raceClients - 1 });
      expect(textOf(await gateway.client.get(name))).toBe(String(answers.findIndex(({ status }) => status === 201)));
    }
  });

  it('B7: a file that others make behind the gateway is not overwritten by a create-only write under way', async () => {
    const slow = gateway.raw();
    slow.send(head('PUT /v1/files/v/behind', 'If-None-Match: *', 'Expect: 100-continue', 'Content-Length: 4'));
    await slow.until(() => slow.received.includes('100 Continue'));
    writeFileSync(gateway.path('v/behind'), 'theirs');
    slow.send('ours');
    expect(rawVerdict(await slow.answer())).toBe('412 precondition_failed');
    expect(readFileSync(gateway.path('v/behind'), 'utf8')).toBe('theirs');
  });

  it('B5: a condition that stopped to hold while the body came is judged again; readers never wait', async () => {
    await gateway.client.put('v/slow', 'one');
    const etag = await etagOf('v/slow');
    const slow = gateway.raw();
    slow.send(`${head('PUT /v1/files/v/slow', `If-Match: ${etag}`, 'Content-Length: 10')}01234`);
    await eventually(
      () => stagedNames(gateway.path('v')),
      (names) => names.length > 0,
    );
    for (let i = 0; i < 20; i += 1) expect((await gateway.client.get('v/slow')).status).toBe(200);
    expect((await gateway.client.put('v/slow', 'two', { 'if-match': etag })).status).toBe(200);
    slow.send('56789');
    expect(rawVerdict(await slow.answer())).toBe('412 precondition_failed');
    expect(textOf(await gateway.client.get('v/slow'))).toBe('two');
  });
});

describe('a condition', () => {
  it.each([
    ['If-Match of what is not there', 'v/absent', { 'if-match': '"x"' }, '412 precondition_failed'],
    ['If-Match: * of what is not there', 'v/absent', { 'if-match': '*' }, '412 precondition_failed'],
    ['If-None-Match: * of what is there', 'v/there', { 'if-none-match': '*' }, '412 precondition_failed'],
    ['If-None-Match of another version', 'v/there', { 'if-none-match': '"x"' }, '200'],
    ['If-Match: * of what is there', 'v/there', { 'if-match': '*' }, '200'],
    ['If-Match in a list of many', 'v/there', { 'if-match': '"a", "b","c"' }, '412 precondition_failed'],
    ['unquoted', 'v/there', { 'if-match': 'abc' }, '400 invalid_request'],
    ['empty', 'v/there', { 'if-match': '' }, '400 invalid_request'],
    ['half quoted', 'v/there', { 'if-none-match': '"abc' }, '400 invalid_request'],
    ['a star in a list', 'v/there', { 'if-match': '*, "a"' }, '400 invalid_request'],
  ])('%s', async (_what, name, headers, verdict) => {
    await gateway.client.put('v/there', 'there');
    const before = await quietSnapshot(gateway.path('v'));
    expect(verdictOf(await gateway.client.put(name, 'there', headers))).toBe(verdict);
    if (verdict !== '200') expect(volumeSnapshot(gateway.path('v'))).toEqual(before);
  });

  it('that fails does not tell the tag of what is there to a strong comparison with a weak one', async () => {
    await gateway.client.put('v/weak', 'x');
    expect(verdictOf(await gateway.client.put('v/weak', 'y', { 'if-match': `W/${await etagOf('v/weak')}` }))).toBe('412 precondition_failed');
    expect(verdictOf(await gateway.client.put('v/weak', 'y', { 'if-none-match': `W/${await etagOf('v/weak')}` }))).toBe('412 precondition_failed');
  });

  it('guards DELETE as well', async () => {
    await gateway.client.put('v/del', 'x');
    expect(verdictOf(await gateway.client.delete('v/del', { 'if-match': '"other"' }))).toBe('412 precondition_failed');
    expect((await gateway.client.delete('v/del', { 'if-match': await etagOf('v/del') })).status).toBe(204);
    expect(existsSync(gateway.path('v/del'))).toBe(false);
  });
});

describe('digests', () => {
  const of = (algorithm: 'sha256' | 'sha512', text: string): string =>
    `${algorithm.replace('sha', 'sha-')}=:${createHash(algorithm).update(text).digest('base64')}:`;
  it.each([
    ['content-digest', of('sha256', 'hello'), '201'],
    ['content-digest', of('sha512', 'hello'), '201'],
    ['repr-digest', of('sha256', 'hello'), '201'],
    ['repr-digest', of('sha512', 'hello'), '201'],
    ['content-digest', `${of('sha256', 'hello')}, ${of('sha512', 'hello')}`, '201'],
    ['content-digest', `md5=:${Buffer.alloc(16).toString('base64')}:, ${of('sha256', 'hello')}`, '201'],
    ['content-digest', of('sha256', 'hullo'), '400 digest_mismatch'],
    ['repr-digest', of('sha512', 'hullo'), '400 digest_mismatch'],
    ['content-digest', `${of('sha256', 'hello')}, ${of('sha512', 'hullo')}`, '400 digest_mismatch'],
    ['content-digest', 'sha-256=hello', '400 invalid_request'],
    ['content-digest', 'sha-256=:AAAA:', '400 invalid_request'],
    ['repr-digest', '!!!', '400 invalid_request'],
    ['content-digest', '', '201'],
  ])('%s: %s is %s', async (name, value, verdict) => {
    await gateway.client.delete('v/digest');
    const before = await quietSnapshot(gateway.path('v'));
    const answer = await gateway.client.put('v/digest', 'hello', { [name]: value });
    expect(verdictOf(answer)).toBe(verdict);
    if (answer.status >= 400) expect(volumeSnapshot(gateway.path('v'))).toEqual(before);
  });

  it('the digest of a file is told by reads until others change it', async () => {
    await gateway.client.put('v/known', 'hello');
    expect((await gateway.client.get('v/known')).headers['repr-digest']).toBe(of('sha256', 'hello'));
    writeFileSync(gateway.path('v/known'), 'other');
    expect((await gateway.client.get('v/known')).headers['repr-digest']).toBeUndefined();
  });
});

describe('a PUT', () => {
  it('of part of a file, or of a coded body, is refused: what is stored are the bytes that are sent', async () => {
    expect(verdictOf(await gateway.client.put('v/part', 'x', { 'content-range': 'bytes 0-0/5' }))).toBe('400 invalid_request');
    for (const coding of ['gzip', 'br', 'deflate', 'identity, gzip', 'aws-chunked'])
      expect(verdictOf(await gateway.client.put('v/part', 'x', { 'content-encoding': coding }))).toBe('415 unsupported_media_type');
    expect((await gateway.client.put('v/part', 'x', { 'content-encoding': 'identity' })).status).toBe(201);
  });

  it('takes any Content-Type, and chunks of any size', async () => {
    for (const type of ['text/plain', 'application/json', 'multipart/form-data; boundary=b', 'nonsense', ''])
      expect((await gateway.client.put('v/typed', '{"not":', { 'content-type': type })).status).toBeLessThan(300);
    const chunks = async function* (): AsyncGenerator<Buffer> {
      for (let i = 0; i < 300; i += 1) yield Buffer.alloc(i, i % 256);
    };
    expect((await gateway.client.put('v/chunked', chunks())).status).toBe(201);
    expect(readFileSync(gateway.path('v/chunked')).length).toBe((299 * 300) / 2);
  });
});

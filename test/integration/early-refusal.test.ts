import { execFile } from 'node:child_process';
import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fileTarget, jsonOf, type LeaseJson, verdictOf } from '../support/gateway-client.ts';
import { head, rawVerdict } from '../support/raw-request.ts';
import { TIER } from '../support/tier.ts';
import { quietSnapshot, volumeSnapshot } from '../support/volume-snapshot.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** A write that is refused on its headers: before the body, and in a way that the client gets to read (B33, I5). */

const MIB = 1_048_576;
let gateway: VolumesGateway;
/** A token of `v/ledger.csv` that a newer one has made void. */
let stale: string;

beforeAll(async () => {
  gateway = await startVolumes();
  const { client } = gateway;
  await client.put('v/ledger.csv', 'old');
  await client.put('v/full/file', 'file');
  await client.put('v/empty/', '');
  const first = await client.lease('v/ledger.csv');
  stale = first.fencing_token;
  await client.release(first);
  await client.lease('v/ledger.csv');
});
afterAll(() => gateway.stop());

describe('a stale writer', () => {
  it('that sends Expect: 100-continue uploads 0 bytes, and the volume is not touched', async () => {
    const before = await quietSnapshot(gateway.path('v'));
    const connection = gateway.raw();
    connection.send(head('PUT /v1/files/v/ledger.csv', `X-Fencing-Token: ${stale}`, 'Expect: 100-continue', `Content-Length: ${50 * MIB}`));
    await connection.until(() => connection.received.includes('\r\n\r\n'));
    expect(connection.received).not.toContain('100 Continue');
    const answer = await connection.answer();
    expect([rawVerdict(answer), answer.headers['connection']]).toEqual(['412 stale_token', 'close']);
    expect(volumeSnapshot(gateway.path('v'))).toEqual(before);
  });

  it('that is curl uploads 0 bytes as well, and exits with 22', async () => {
    const file = join(gateway.directory, 'big');
    writeFileSync(file, '');
    truncateSync(file, 50 * MIB);
    const run = promisify(execFile)('curl', [
      '-sS',
      '--fail-with-body',
      '-o',
      join(gateway.directory, 'answer'),
      '-w',
      '%{http_code} %{size_upload}',
      '-H',
      `X-Fencing-Token: ${stale}`,
      '-H',
      'Expect: 100-continue',
      '-T',
      file,
      `${gateway.url}/v1/files/v/ledger.csv`,
    ]);
    await expect(run).rejects.toMatchObject({ code: 22, stdout: '412 0' });
  });

  it('B33: that sends 50 MB without Expect still reads the 412, every time', async () => {
    const body = Buffer.alloc(50 * MIB, 97);
    const verdicts = new Map<string, number>();
    for (let round = 0; round < TIER.raceRounds; round += 1) {
      const connection = gateway.raw();
      connection.send(head('PUT /v1/files/v/ledger.csv', `X-Fencing-Token: ${stale}`, `Content-Length: ${body.byteLength}`));
      connection.send(body);
      const verdict = await connection.answer().then(rawVerdict, (error: Error) => error.message);
      verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1);
      connection.close();
    }
    expect(verdicts.get('412 stale_token') ?? 0).toBeGreaterThanOrEqual(Math.ceil(0.99 * TIER.raceRounds));
  });

  it('B33: that is curl, with and without Expect, in one connection after the other', async () => {
    const file = join(gateway.directory, 'big');
    for (const expectation of ['Expect:', 'Expect: 100-continue']) {
      const { stdout } = await promisify(execFile)('curl', [
        '-sS',
        '-o',
        join(gateway.directory, 'answer'),
        '-w',
        '%{http_code}',
        '-H',
        `X-Fencing-Token: ${stale}`,
        '-H',
        expectation,
        '-T',
        file,
        `${gateway.url}/v1/files/v/ledger.csv`,
      ]);
      expect(stdout).toBe('412');
    }
  });

  it('keeps its connection when the refused body is small', async () => {
    const connection = gateway.raw();
    connection.send(`${head('PUT /v1/files/v/ledger.csv', `X-Fencing-Token: ${stale}`, 'Content-Length: 5')}hello`);
    expect(rawVerdict(await connection.answer())).toBe('412 stale_token');
    connection.send(head('GET /healthz'));
    expect((await connection.answer()).status).toBe(200);
  });
});

describe('100 Continue', () => {
  it('is sent to an admitted writer, whose body then becomes the file', async () => {
    const connection = gateway.raw();
    connection.send(head('PUT /v1/files/v/expected', 'Expect: 100-continue', 'Content-Length: 5'));
    await connection.until(() => connection.received.includes('100 Continue'));
    connection.send('hello');
    expect((await connection.answer()).status).toBe(201);
    expect((await gateway.client.get('v/expected')).bytes.toString()).toBe('hello');
  });

  it('is never sent where the body could not be used: unknown expectations, bad lengths, locked with no patience', async () => {
    const cases: readonly (readonly [string, readonly string[], string])[] = [
      ['v/expected', ['Expect: a-miracle', 'Content-Length: 5'], '417 expectation_failed'],
      ['v/expected', ['Expect: 100-continue, a-miracle', 'Content-Length: 5'], '417 expectation_failed'],
      ['v/expected', ['Expect: 100-continue', 'Content-Length: 5', 'If-None-Match: *'], '412 precondition_failed'],
      ['v/ledger.csv', ['Expect: 100-continue', 'Content-Length: 5', 'X-Lock-Wait-Ms: 0'], '423 resource_locked'],
      ['v/ledger.csv', ['Expect: 100-continue', 'Content-Length: 5', 'Idempotency-Key: '], '400 invalid_request'],
      ['v/full', ['Expect: 100-continue', 'Content-Length: 5'], '409 is_a_directory'],
    ];
    for (const [name, headers, verdict] of cases) {
      const connection = gateway.raw();
      connection.send(head(`PUT ${fileTarget(name)}`, ...headers));
      await connection.until(() => connection.received.includes('\r\n\r\n'));
      expect([connection.received.includes('100 Continue'), rawVerdict(await connection.answer())]).toEqual([false, verdict]);
    }
  });
});

describe('R28: a stale token is refused by every verb that changes something', () => {
  const form = `--b\r\nContent-Disposition: form-data; name="f"; filename="ledger.csv"\r\n\r\nx\r\n--b--\r\n`;
  const token = (): { 'x-fencing-token': string } => ({ 'x-fencing-token': stale });
  const verbs = [
    ['PUT', () => gateway.client.put('v/ledger.csv', 'x', token())],
    ['PUT, creating only', () => gateway.client.put('v/ledger.csv', 'x', { ...token(), 'if-none-match': '*' })],
    ['PATCH of a range', () => gateway.client.patch('v/ledger.csv', 'bytes=0-0', 'x', token())],
    ['PATCH to the end', () => gateway.client.patch('v/ledger.csv', 'bytes=0-', 'x', token())],
    ['append', () => gateway.client.patch('v/ledger.csv', 'append', 'x', token())],
    ['DELETE', () => gateway.client.delete('v/ledger.csv', token())],
    ['DELETE of a directory', () => gateway.client.delete('v/ledger.csv/', token())],
    ['mkdir', () => gateway.client.put('v/ledger.csv/', '', token())],
    [
      'multipart',
      () => gateway.client.send('POST', '/v1/files/v/', { headers: { ...token(), 'content-type': 'multipart/form-data; boundary=b' }, body: form }),
    ],
    ['MOVE of the name', () => gateway.client.post('/v1/moves', { from: 'v/ledger.csv', to: 'v/new', from_token: stale })],
    ['MOVE onto the name', () => gateway.client.post('/v1/moves', { from: 'v/full/file', to: 'v/ledger.csv', overwrite: true, to_token: stale })],
    ['MOVE with the token for both', () => gateway.client.post('/v1/moves', { from: 'v/ledger.csv', to: 'v/new' }, token())],
    ['COPY onto the name', () => gateway.client.post('/v1/copies', { from: 'v/full/file', to: 'v/ledger.csv', overwrite: true, to_token: stale })],
    ['COPY of the name, with its token', () => gateway.client.post('/v1/copies', { from: 'v/ledger.csv', to: 'v/new', from_token: stale })],
  ] as const;

  it.each(verbs)('%s', async (_verb, write) => {
    const before = await quietSnapshot(gateway.path('v'));
    const answer = await write();
    expect(verdictOf(answer)).toBe('412 stale_token');
    expect(jsonOf(answer)).toMatchObject({ presented_token: stale, high_water_mark: expect.any(String) });
    expect(volumeSnapshot(gateway.path('v'))).toEqual(before);
  });
});

describe('the first answer of a new holder', () => {
  it('comes after the old token is void: the mark is raised by the grant, not by the first write', async () => {
    const { client } = gateway;
    const old = await client.lease('v/handed-over');
    expect((await client.put('v/handed-over', 'old', { 'x-fencing-token': old.fencing_token })).status).toBe(201);
    const waiting = client.post('/v1/leases', { resource: 'v/handed-over', wait_ms: 10_000 });
    await client.release(old);
    const granted = jsonOf<LeaseJson>(await waiting);
    expect(granted.state).toBe('held');
    expect(BigInt(granted.fencing_token)).toBeGreaterThan(BigInt(old.fencing_token));
    expect(verdictOf(await client.put('v/handed-over', 'late', { 'x-fencing-token': old.fencing_token }))).toBe('412 stale_token');
    expect((await client.get('v/handed-over')).bytes.toString()).toBe('old');
  });
});

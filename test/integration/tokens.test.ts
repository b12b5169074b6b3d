import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, jsonOf, type LeaseJson, textOf, verdictOf } from '../support/gateway-client.ts';
import { ask, head, rawVerdict } from '../support/raw-request.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** Which token is accepted, and which verdict a refused one gets, on a gateway without authentication. */

let gateway: VolumesGateway;
beforeAll(async () => {
  gateway = await startVolumes({
    volumes: { v: {}, once: { require_token: 'once_leased' }, strict: { require_token: true }, locks: { path: null } },
  });
  await gateway.client.put('v/dir/file', 'x');
});
afterAll(() => gateway.stop());

const token = (value: string) => ({ 'x-fencing-token': value });
const lease = (name: string, more = {}): Promise<LeaseJson> => gateway.client.lease(name, more);

describe('a token that is not a strict decimal is 400', () => {
  it.each([
    '',
    '0',
    '00',
    '01',
    '+1',
    '-1',
    '1.0',
    '1.',
    '.1',
    '1e3',
    '1E3',
    '0x1',
    '1_000',
    '1,2',
    '1, 1',
    '1 2',
    '"1"',
    'null',
    'NaN',
    'Infinity',
    '1n',
    '9223372036854775808',
    '99999999999999999999',
    '18446744073709551616',
    'bytes',
    '\u00b9',
    'x'.repeat(5_000),
  ])('%j', async (value) => {
    const answer = await ask(gateway.raw(), `${head('PUT /v1/files/v/form', `X-Fencing-Token: ${value}`, 'Content-Length: 1')}x`);
    expect(rawVerdict(answer)).toBe('400 invalid_token');
    expect((await gateway.client.get('v/form')).status).toBe(404);
  });

  it('also in the digits of another script, and sent twice, even with the same value', async () => {
    const { fencing_token: good } = await lease('v/form');
    for (const headers of [
      [`X-Fencing-Token: ${good}`, `X-Fencing-Token: ${good}`],
      [`X-Fencing-Token: ${good}`, 'X-Fencing-Token: 9'],
      ['X-Fencing-Token: \u0661'],
      ['X-Fencing-Token: \uff11'],
    ]) {
      const answer = await ask(gateway.raw(), `${head('PUT /v1/files/v/form', ...headers, 'Content-Length: 1')}x`);
      expect(rawVerdict(answer)).toBe('400 invalid_token');
    }
  });

  it('also in the body of a move', async () => {
    for (const value of ['0', '1e3', '-1', '', 5, 4103.5, true, {}, ['7'], '9'.repeat(5_000)]) {
      for (const member of ['from_token', 'to_token']) {
        for (const verb of ['moves', 'copies'])
          expect([value, verdictOf(await gateway.client.post(`/v1/${verb}`, { from: 'v/dir/file', to: 'v/other', [member]: value }))]).toEqual([
            value,
            '400 invalid_token',
          ]);
      }
    }
  });

  it('surrounding blanks belong to the header, not to the token', async () => {
    const { fencing_token: good } = await lease('v/blanks');
    const answer = await ask(gateway.raw(), `${head('PUT /v1/files/v/blanks', `X-Fencing-Token: \t ${good} \t`, 'Content-Length: 1')}x`);
    expect(answer.status).toBe(201);
  });
});

describe('the first match of the verdicts wins', () => {
  it('malformed, before everything else', async () => {
    expect(verdictOf(await gateway.client.put('v/dir', 'x', { ...token('01'), 'if-match': '"other"' }))).toBe('400 invalid_token');
  });

  it('above the mark: never issued, and nothing of it is stored', async () => {
    const { fencing_token: mark } = await lease('v/above');
    const above = (BigInt(mark) + 1n).toString();
    for (const value of [above, '9223372036854775807']) {
      const answer = await gateway.client.put('v/above', 'x', { ...token(value), 'x-lease-id': 'wrong', 'if-match': '"other"' });
      expect(verdictOf(answer)).toBe('403 token_not_issued');
    }
    expect(jsonOf(await gateway.client.send('GET', '/v1/locks/v/above'))).toMatchObject({ high_water_mark: mark });
    expect((await gateway.client.put('v/above', 'x', token(mark))).status).toBe(201);
  });

  it('on a resource that was never leased every token is above the mark', async () => {
    expect(verdictOf(await gateway.client.put('v/never', 'x', token('1')))).toBe('403 token_not_issued');
  });

  it('of a live shared lease, also below the mark', async () => {
    const [first, second] = [await lease('v/shared', { mode: 'shared' }), await lease('v/shared', { mode: 'shared' })];
    expect(BigInt(second.fencing_token)).toBeGreaterThan(BigInt(first.fencing_token));
    for (const reader of [first, second]) {
      expect(verdictOf(await gateway.client.put('v/shared', 'x', { ...token(reader.fencing_token), 'x-lease-id': 'wrong' }))).toBe(
        '412 lease_is_shared',
      );
    }
    await gateway.client.release(first);
    expect(verdictOf(await gateway.client.put('v/shared', 'x', token(first.fencing_token)))).toBe('412 stale_token');
  });

  it('below the mark: stale, whatever the lease id says', async () => {
    const old = await lease('v/stale');
    await gateway.client.release(old);
    const now = await lease('v/stale');
    for (const id of [old.lease_id, now.lease_id, 'wrong']) {
      const answer = await gateway.client.put('v/stale', 'x', { ...token(old.fencing_token), 'x-lease-id': id, 'if-match': '"other"' });
      expect(verdictOf(answer)).toBe('412 stale_token');
      expect(jsonOf(answer)).toMatchObject({ presented_token: old.fencing_token, high_water_mark: now.fencing_token });
    }
  });

  it('is recorded with the lease whose token it is, also when that has ended or somebody else came', async () => {
    const old = await lease('v/whose');
    await gateway.client.release(old);
    expect(verdictOf(await gateway.client.put('v/whose', 'x', token(old.fencing_token)))).toBe('412 lease_ended');
    const reader = await lease('v/whose', { mode: 'shared' });
    for (const each of [old, reader]) await gateway.client.put('v/whose', 'x', token(each.fencing_token));
    await gateway.client.put('v/whose', 'x', token('999999999'));
    const refused = await gateway.client.audit({ path: 'whose', outcome: 'rejected', order: 'asc' });
    expect(refused.map(({ code, lease_ref: ref }) => [code, ref])).toEqual([
      ['lease_ended', old.lease_ref],
      ['stale_token', old.lease_ref],
      ['lease_is_shared', reader.lease_ref],
      ['token_not_issued', null],
    ]);
  });

  it('at the mark with another lease id: not its owner, also when it has ended', async () => {
    const held = await lease('v/owner');
    expect(verdictOf(await gateway.client.put('v/owner', 'x', { ...token(held.fencing_token), 'x-lease-id': 'wrong' }))).toBe('403 not_lease_owner');
    expect((await gateway.client.put('v/owner', 'x', { ...token(held.fencing_token), 'x-lease-id': held.lease_id })).status).toBe(201);
    await gateway.client.release(held);
    expect(verdictOf(await gateway.client.put('v/owner', 'x', { ...token(held.fencing_token), 'x-lease-id': 'wrong' }))).toBe('403 not_lease_owner');
  });

  it('at the mark of an ended lease, though nobody took the lock since; before the conditions', async () => {
    const held = await lease('v/ended');
    await gateway.client.release(held);
    const answer = await gateway.client.put('v/ended', 'x', { ...token(held.fencing_token), 'x-lease-id': held.lease_id, 'if-match': '"other"' });
    expect(verdictOf(answer)).toBe('412 lease_ended');
    expect(jsonOf(answer)).toMatchObject({ reason: 'released', ended_at: expect.stringMatching(/^\d{4}-.*Z$/) });
  });

  it('then what stands at the name, then the conditions', async () => {
    const held = await lease('v/dir');
    expect(verdictOf(await gateway.client.put('v/dir', 'x', { ...token(held.fencing_token), 'if-match': '"other"' }))).toBe('409 is_a_directory');
    const file = await lease('v/dir/file');
    expect(verdictOf(await gateway.client.put('v/dir/file', 'x', { ...token(file.fencing_token), 'if-match': '"other"' }))).toBe(
      '412 precondition_failed',
    );
    expect(verdictOf(await gateway.client.patch('v/dir/file', 'bytes=7-7', 'x', { ...token(file.fencing_token), 'if-match': '"other"' }))).toBe(
      '416 range_not_satisfiable',
    );
  });

  it('an expired lease is refused at the instant it expires, not by a cleaner', async () => {
    const held = await lease('v/short', { ttl_ms: 1_000 });
    const answer = await eventually(
      () => gateway.client.put('v/short', 'x', token(held.fencing_token)),
      ({ status }) => status >= 400,
    );
    expect(verdictOf(answer)).toBe('412 lease_ended');
    expect(jsonOf(answer)).toMatchObject({ reason: 'expired' });
  });
});

describe('tokens grow', () => {
  it('over every kind of grant, on every resource, also implicit and shared ones', async () => {
    const seen: bigint[] = [];
    for (let round = 0; round < 3; round += 1) {
      seen.push(BigInt((await gateway.client.put('v/grow', String(round))).headers['x-fencing-token'] ?? ''));
      const held = await lease('v/grow');
      seen.push(BigInt(held.fencing_token));
      await gateway.client.release(held);
      const reader = await lease('v/grow', { mode: 'shared' });
      seen.push(BigInt(reader.fencing_token));
      await gateway.client.release(reader);
      seen.push(BigInt((await gateway.client.delete('v/grow')).headers['x-fencing-token'] ?? ''));
    }
    expect([...seen].sort((a, b) => Number(a - b))).toEqual(seen);
    expect(new Set(seen).size).toBe(seen.length);
  });

  it('a write with a token answers with it, and takes no new one', async () => {
    const held = await lease('v/same');
    for (const body of ['one', 'two']) {
      const answer = await gateway.client.put('v/same', body, token(held.fencing_token));
      expect(answer.headers['x-fencing-token']).toBe(held.fencing_token);
      expect(jsonOf(answer)).toMatchObject({ fencing_token: held.fencing_token, lease_ref: held.lease_ref });
    }
  });
});

describe('a write without a token', () => {
  it('takes a lease for this one request, in line with everybody else', async () => {
    const held = await lease('v/line', { client_id: 'batch-7' });
    const waiting = gateway.client.put('v/line', 'mine', { 'x-lock-wait-ms': '30000' });
    await eventually(
      async () => jsonOf(await gateway.client.send('GET', '/v1/locks/v/line')),
      ({ queue_length: length }) => length === 1,
    );
    await gateway.client.release(held);
    expect((await waiting).status).toBe(201);
    expect(jsonOf(await gateway.client.send('GET', '/v1/locks/v/line'))).toMatchObject({ holders: [], queue_length: 0 });
  });

  it('is 423 when its patience runs out, and says who holds', async () => {
    await lease('v/held', { client_id: 'batch-7' });
    for (const patience of ['0', '50']) {
      const answer = await gateway.client.put('v/held', 'x', { 'x-lock-wait-ms': patience });
      expect([verdictOf(answer), Number(answer.headers['retry-after']) >= 1]).toEqual(['423 resource_locked', true]);
      expect(jsonOf(answer)).toMatchObject({ holder_client_id: 'batch-7', queue_length: 0 });
    }
    expect((await gateway.client.get('v/held')).status).toBe(404);
  });

  it.each(['-1', '1.5', '60001', 'soon', ''])('X-Lock-Wait-Ms: %j is 400', async (value) => {
    expect(verdictOf(await gateway.client.put('v/patience', 'x', { 'x-lock-wait-ms': value }))).toBe('400 invalid_request');
  });

  it('that names a lease by X-Lease-Id is 428 by every verb: it means to write under that lease, and lost the token', async () => {
    const { client } = gateway;
    const held = await lease('v/slip');
    await client.put('v/slip', 'theirs', token(held.fencing_token));
    for (const id of [held.lease_id, 'nope']) {
      const headers = { 'x-lease-id': id, 'x-lock-wait-ms': '0' };
      const answers = [
        await client.put('v/slip', 'late', headers),
        await client.patch('v/slip', 'append', 'late', headers),
        await client.send('DELETE', '/v1/files/v/slip', { headers }),
        await client.post('/v1/moves', { from: 'v/slip', to: 'v/slipped' }, headers),
        await client.post('/v1/copies', { from: 'v/dir/file', to: 'v/slip', overwrite: true }, headers),
      ];
      expect(answers.map(verdictOf)).toEqual(answers.map(() => '428 token_required'));
    }
    expect(textOf(await client.get('v/slip'))).toBe('theirs');
  });

  it('require_token once_leased: 428 from the first lease by name on, for every verb, also after a restart', async () => {
    const { client } = gateway;
    expect((await client.put('once/a', 'x')).status).toBe(201);
    expect((await client.put('once/a', 'y')).status).toBe(200);
    const held = await client.lease('once/a');
    expect((await client.put('once/a', 'z', token(held.fencing_token))).status).toBe(200);
    await client.release(held);
    const tokenless = [
      client.put('once/a', 'x'),
      client.delete('once/a'),
      client.patch('once/a', 'append', 'x'),
      client.post('/v1/moves', { from: 'once/a', to: 'once/b' }),
      client.post('/v1/copies', { from: 'v/dir/file', to: 'once/a', overwrite: true }),
    ];
    for (const answer of await Promise.all(tokenless)) expect(verdictOf(answer)).toBe('428 token_required');
    expect((await client.put('once/other', 'x')).status).toBe(201);
    expect(textOf(await client.get('once/a'))).toBe('z');
  });

  it('require_token true: 428 for every verb; with a token it goes', async () => {
    const { client } = gateway;
    const form = '--b\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\nx\r\n--b--\r\n';
    const answers = await Promise.all([
      client.put('strict/a', 'x'),
      client.put('strict/d/', ''),
      client.patch('strict/a', 'append', 'x'),
      client.delete('strict/a'),
      client.delete('strict/d/'),
      client.post('/v1/copies', { from: 'v/dir/file', to: 'strict/a' }),
      client.send('POST', '/v1/files/strict/', { headers: { 'content-type': 'multipart/form-data; boundary=b' }, body: form }),
    ]);
    for (const answer of answers) expect(verdictOf(answer)).toBe('428 token_required');
    const held = await client.lease('strict/a');
    expect((await client.put('strict/a', 'x', token(held.fencing_token))).status).toBe(201);
  });

  it('a lock-only volume has leases and no files', async () => {
    const held = await lease('locks/elevator');
    expect(held.state).toBe('held');
    expect(verdictOf(await gateway.client.put('locks/elevator', 'x', token(held.fencing_token)))).toBe('400 invalid_request');
    expect(verdictOf(await gateway.client.get('locks/elevator'))).toBe('404 not_found');
    expect(verdictOf(await gateway.client.get('locks/'))).toBe('404 not_found');
    expect(jsonOf(await gateway.client.send('GET', '/v1/volumes'))).toEqual({
      volumes: [
        { name: 'v', files: true, require_token: 'false', tokens: 'issued', read_only: false },
        { name: 'once', files: true, require_token: 'once_leased', tokens: 'issued', read_only: false },
        { name: 'strict', files: true, require_token: 'true', tokens: 'issued', read_only: false },
        { name: 'locks', files: false, require_token: 'false', tokens: 'issued', read_only: false },
      ],
    });
  });
});

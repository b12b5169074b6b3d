import { createHash } from 'node:crypto';
import { existsSync, linkSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Step } from '../../src/domain/steps.ts';
import { type Answer, eventually, type Headers, type Json, jsonOf, verdictOf } from '../support/gateway-client.ts';
import { quietSnapshot, stagedNames, volumeSnapshot } from '../support/volume-snapshot.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** MOVE and COPY. */

let gateway: VolumesGateway;
let onStep: ((step: Step) => void) | null = null;
beforeAll(async () => {
  gateway = await startVolumes({
    volumes: { v: {}, other: {}, small: { limits: { body_bytes: 3 } } },
    steps: { reached: (step) => void onStep?.(step) as undefined },
  });
});
afterAll(() => gateway.stop());

const move = (body: Json, headers?: Headers): Promise<Answer> => gateway.client.post('/v1/moves', body, headers);
const copy = (body: Json, headers?: Headers): Promise<Answer> => gateway.client.post('/v1/copies', body, headers);
const at = (name: string): string => readFileSync(gateway.path(name), 'utf8');
const inode = (name: string): number => statSync(gateway.path(name)).ino;
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

describe('MOVE', () => {
  it('takes the file itself to the new name, makes its parents, and answers as PUT', async () => {
    await gateway.client.put('v/m/a', 'moved');
    const ino = inode('v/m/a');
    const answer = await move({ from: 'v/m/a', to: 'v/m/new/parents/b' });
    expect([answer.status, existsSync(gateway.path('v/m/a')), at('v/m/new/parents/b'), inode('v/m/new/parents/b')]).toEqual([
      201,
      false,
      'moved',
      ino,
    ]);
    expect(jsonOf(answer)).toMatchObject({
      resource: 'v/m/new/parents/b',
      volume: 'v',
      path: 'm/new/parents/b',
      size_bytes: 5,
      etag: answer.headers['etag'],
      operation_id: answer.headers['x-operation-id'],
      durability: 'synced',
      digest: { 'sha-256': sha256('moved') },
    });
    const { etag, 'repr-digest': digest } = (await gateway.client.get('v/m/new/parents/b')).headers;
    expect([etag, digest]).toEqual([answer.headers['etag'], answer.headers['repr-digest']]);
    const records = await gateway.client.audit({ operation_id: answer.headers['x-operation-id'] ?? '' });
    expect(records.map(({ action, outcome, path, digest: recorded }) => [action, outcome, path, recorded]).sort()).toEqual([
      ['move', 'committed', 'm/a', null],
      ['move', 'committed', 'm/new/parents/b', sha256('moved')],
    ]);
    await eventually(
      () => stagedNames(gateway.path('v')),
      (names) => names.length === 0,
    );
  });

  it('says no digest of a file that somebody put there beside the gateway', async () => {
    writeFileSync(gateway.path('v/foreign'), 'not ours');
    const answer = await move({ from: 'v/foreign', to: 'v/foreign-moved' });
    expect([answer.status, jsonOf<{ digest: unknown }>(answer).digest, answer.headers['repr-digest']]).toEqual([201, null, undefined]);
  });

  it('replaces only when asked to', async () => {
    await gateway.client.put('v/over/a', 'a');
    await gateway.client.put('v/over/b', 'b');
    expect(verdictOf(await move({ from: 'v/over/a', to: 'v/over/b' }))).toBe('409 already_exists');
    expect([at('v/over/a'), at('v/over/b')]).toEqual(['a', 'b']);
    expect((await move({ from: 'v/over/a', to: 'v/over/b', overwrite: true })).status).toBe(200);
    expect([existsSync(gateway.path('v/over/a')), at('v/over/b')]).toEqual([false, 'a']);
  });

  it('F25: leaves a tombstone: a late writer of the old name meets its mark', async () => {
    const { client } = gateway;
    await client.put('v/tomb', 'x');
    const old = await client.lease('v/tomb');
    await client.release(old);
    const mover = await client.lease('v/tomb');
    expect((await move({ from: 'v/tomb', to: 'v/tomb-moved', from_token: mover.fencing_token })).status).toBe(201);
    expect(verdictOf(await client.put('v/tomb', 'late', { 'x-fencing-token': old.fencing_token }))).toBe('412 stale_token');
    expect(existsSync(gateway.path('v/tomb'))).toBe(false);
    expect((await client.put('v/tomb', 'again', { 'x-fencing-token': mover.fencing_token })).status).toBe(201);
  });

  it('asks for the right to both names: each its own token, one lease over both, or a lease for this request', async () => {
    const { client } = gateway;
    await client.put('v/two/a', 'x');
    const [from, to] = [await client.lease('v/two/a'), await client.lease('v/two/b')];
    expect(verdictOf(await move({ from: 'v/two/a', to: 'v/two/b' }, { 'x-lock-wait-ms': '0' }))).toBe('423 resource_locked');
    expect(verdictOf(await move({ from: 'v/two/a', to: 'v/two/b', from_token: from.fencing_token }, { 'x-lock-wait-ms': '0' }))).toBe(
      '423 resource_locked',
    );
    expect(verdictOf(await move({ from: 'v/two/a', to: 'v/two/b', from_token: to.fencing_token, to_token: from.fencing_token }))).toMatch(
      /^(403|412) /,
    );
    expect((await move({ from: 'v/two/a', to: 'v/two/b', from_token: from.fencing_token, to_token: to.fencing_token })).status).toBe(201);
    await client.release(from);
    await client.release(to);
    const both = await client.lease(['v/two/b', 'v/two/c']);
    expect((await move({ from: 'v/two/b', to: 'v/two/c' }, { 'x-fencing-token': both.fencing_token })).status).toBe(201);
    expect(at('v/two/c')).toBe('x');
  });

  it('is recorded with the lease of each name', async () => {
    const { client } = gateway;
    await client.put('v/leases/a', 'x');
    const [from, to] = [await client.lease('v/leases/a'), await client.lease('v/leases/b')];
    const tokens = { from_token: from.fencing_token, to_token: to.fencing_token };
    const answer = await client.post('/v1/moves', { from: 'v/leases/a', to: 'v/leases/b', ...tokens });
    expect([answer.status, jsonOf(answer)['lease_ref'], jsonOf(answer)['fencing_token']]).toEqual([201, to.lease_ref, to.fencing_token]);
    expect(await client.audit({ action: 'move', path: 'leases/a' })).toMatchObject([
      { lease_ref: from.lease_ref, fencing_token: from.fencing_token },
    ]);
    expect(await client.audit({ action: 'move', path: 'leases/b' })).toMatchObject([{ lease_ref: to.lease_ref, fencing_token: to.fencing_token }]);
  });

  it('judges conditions on the file that moves', async () => {
    const { headers } = await gateway.client.put('v/cond-move', 'x');
    expect(verdictOf(await move({ from: 'v/cond-move', to: 'v/cond-moved' }, { 'if-match': '"other"' }))).toBe('412 precondition_failed');
    expect((await move({ from: 'v/cond-move', to: 'v/cond-moved' }, { 'if-match': headers['etag'] ?? '' })).status).toBe(201);
  });

  it('two that cross each other both end, in some order', async () => {
    await gateway.client.put('v/cross/a', 'a');
    await gateway.client.put('v/cross/b', 'b');
    const answers = await Promise.all([
      move({ from: 'v/cross/a', to: 'v/cross/b', overwrite: true }),
      move({ from: 'v/cross/b', to: 'v/cross/a', overwrite: true }),
    ]);
    expect(answers.map(({ status }) => status).every((status) => [200, 201].includes(status))).toBe(true);
    expect([existsSync(gateway.path('v/cross/a')), existsSync(gateway.path('v/cross/b'))].filter(Boolean)).toHaveLength(1);
  });

  it('of many to one name exactly one arrives', async () => {
    const names = Array.from({ length: 8 }, (_, i) => `v/race/${i}`);
    for (const name of names) await gateway.client.put(name, name);
    const answers = await Promise.all(names.map((from) => move({ from, to: 'v/race/target' }, { 'x-lock-wait-ms': '30000' })));
    expect(answers.map(verdictOf).sort()).toEqual(['201', ...Array.from({ length: 7 }, () => '409 already_exists')]);
    expect(names.filter((name) => !existsSync(gateway.path(name)))).toEqual([at('v/race/target')]);
  });
});

describe('a file that was just moved', () => {
  it('F17: has one name for whoever appends or writes a range, though its old one still lies in the trash', async () => {
    const verdicts: string[] = [];
    for (let round = 0; round < 10; round += 1) {
      const [from, to] = [`v/m/moved-${round}`, `v/m/grows-${round}`];
      await gateway.client.put(from, 'abc');
      verdicts.push(verdictOf(await move({ from, to })));
      verdicts.push(verdictOf(await gateway.client.patch(to, 'append', 'd')), verdictOf(await gateway.client.patch(to, 'bytes=0-0', 'A')));
      expect(at(to)).toBe('Abcd');
    }
    expect(new Set(verdicts)).toEqual(new Set(['201', '200']));
  });

  it('F17: has several when it had several', async () => {
    for (let round = 0; round < 10; round += 1) {
      const [from, to] = [`v/m/linked-${round}`, `v/m/elsewhere-${round}`];
      await gateway.client.put(from, 'abc');
      linkSync(gateway.path(from), gateway.path(`v/m/other-${round}`));
      expect(verdictOf(await move({ from, to }))).toBe('201');
      expect(verdictOf(await gateway.client.patch(to, 'append', 'd'))).toBe('409 multiple_links');
    }
  });
});

describe('COPY', () => {
  it('makes a file of its own with the same bytes, and answers as PUT with the digest', async () => {
    await gateway.client.put('v/c/a', 'copied');
    const answer = await copy({ from: 'v/c/a', to: 'v/c/deep/b' });
    expect([answer.status, at('v/c/a'), at('v/c/deep/b')]).toEqual([201, 'copied', 'copied']);
    expect(inode('v/c/a')).not.toBe(inode('v/c/deep/b'));
    expect(jsonOf(answer)).toMatchObject({ resource: 'v/c/deep/b', size_bytes: 6, digest: { 'sha-256': sha256('copied') } });
    expect((await gateway.client.get('v/c/deep/b')).headers).toMatchObject({
      etag: answer.headers['etag'],
      'repr-digest': answer.headers['repr-digest'],
    });
    expect(await gateway.client.audit({ operation_id: answer.headers['x-operation-id'] ?? '' })).toMatchObject([
      { action: 'copy', path: 'c/deep/b', outcome: 'committed', digest: sha256('copied') },
    ]);
  });

  it('goes across volumes, and replaces only when asked to', async () => {
    await gateway.client.put('v/c/x', 'one');
    expect((await copy({ from: 'v/c/x', to: 'other/x' })).status).toBe(201);
    await gateway.client.put('v/c/x', 'two');
    expect(verdictOf(await copy({ from: 'v/c/x', to: 'other/x' }))).toBe('409 already_exists');
    expect((await copy({ from: 'v/c/x', to: 'other/x', overwrite: true })).status).toBe(200);
    expect(at('other/x')).toBe('two');
    expect(verdictOf(await copy({ from: 'v/c/x', to: 'small/x', overwrite: true }))).toBe('201');
    await gateway.client.put('v/c/x', 'too long');
    expect(verdictOf(await copy({ from: 'v/c/x', to: 'small/x', overwrite: true }))).toBe('413 body_too_large');
  });

  it('reads without a lease, while another one holds the source', async () => {
    await gateway.client.put('v/c/held', 'x');
    await gateway.client.lease('v/c/held');
    expect((await copy({ from: 'v/c/held', to: 'v/c/of-held' }, { 'x-lock-wait-ms': '0' })).status).toBe(201);
  });

  it('takes one version of the source, also when that is replaced meanwhile', async () => {
    const [old, fresh] = ['o'.repeat(3_000_000), 'n'.repeat(3_000_000)];
    await gateway.client.put('v/c/big', old);
    const copies = Array.from({ length: 4 }, (_, i) => copy({ from: 'v/c/big', to: `v/c/big-${i}` }));
    await gateway.client.put('v/c/big', fresh);
    for (const [i, answer] of (await Promise.all(copies)).entries()) {
      expect(answer.status).toBe(201);
      expect([old, fresh].includes(at(`v/c/big-${i}`))).toBe(true);
      expect(jsonOf(answer)).toMatchObject({ digest: { 'sha-256': sha256(at(`v/c/big-${i}`)) } });
    }
  });
});

describe('both', () => {
  const bad: readonly (readonly [string, Json, string])[] = [
    ['onto itself', { from: 'v/kept', to: 'v/kept' }, '409 same_resource'],
    ['of what is not there', { from: 'v/absent', to: 'v/new' }, '404 not_found'],
    ['of a directory', { from: 'v/a-dir', to: 'v/new' }, '409 is_a_directory'],
    ['below a file', { from: 'v/kept', to: 'v/kept2/x' }, '409 not_a_directory'],
    ['to no volume', { from: 'v/kept', to: 'nowhere/x' }, '404 volume_not_found'],
    ['from no volume', { from: 'nowhere/x', to: 'v/new' }, '404 volume_not_found'],
    ['without a target', { from: 'v/kept' }, '400 invalid_request'],
    ['with a member too many', { from: 'v/kept', to: 'v/new', force: true }, '400 invalid_request'],
    ['with a word for overwrite', { from: 'v/kept', to: 'v/new', overwrite: 'yes' }, '400 invalid_request'],
    ['of a name with dots', { from: 'v/../v/kept', to: 'v/new' }, '400 invalid_path'],
    ['into a hidden place', { from: 'v/kept', to: 'v/.fencegate/x' }, '400 invalid_path'],
    ['with a token of nobody', { from: 'v/kept', to: 'v/new', to_token: '99' }, '403 token_not_issued'],
  ];
  it.each(bad)('%s', async (_what, body, verdict) => {
    await gateway.client.put('v/kept', 'kept');
    await gateway.client.put('v/kept2', 'kept');
    await gateway.client.put('v/a-dir/', '');
    const before = await quietSnapshot(gateway.path('v'));
    for (const answer of [await move(body), await copy(body)]) expect(verdictOf(answer)).toBe(verdict);
    expect(volumeSnapshot(gateway.path('v'))).toEqual(before);
  });

  it('MOVE across volumes is 409: copy, then delete', async () => {
    await gateway.client.put('v/kept', 'kept');
    const answer = await move({ from: 'v/kept', to: 'other/kept' });
    expect([verdictOf(answer), existsSync(gateway.path('other/kept'))]).toEqual(['409 cross_volume', false]);
  });

  it('JSON that is none, or another media type, is refused before anything', async () => {
    for (const target of ['/v1/moves', '/v1/copies']) {
      expect(verdictOf(await gateway.client.send('POST', target, { headers: { 'content-type': 'application/json' }, body: '{"from":' }))).toBe(
        '400 invalid_request',
      );
      expect(verdictOf(await gateway.client.send('POST', target, { headers: { 'content-type': 'text/plain' }, body: '{}' }))).toBe(
        '415 unsupported_media_type',
      );
      expect(
        verdictOf(
          await gateway.client.send('POST', target, {
            headers: { 'content-type': 'application/json' },
            body: `{"from":"v/a","to":"${'x'.repeat(1_100_000)}"}`,
          }),
        ),
      ).toBe('413 body_too_large');
      expect(verdictOf(await gateway.client.send('GET', target))).toBe('405 method_not_allowed');
    }
  });

  it.each<[string, (body: Json) => Promise<Answer>]>([
    ['MOVE', move],
    ['COPY', copy],
  ])('%s whose target appears between check and commit does not overwrite it', async (name, run) => {
    const to = `v/appears-${name}`;
    await gateway.client.put('v/appearing', 'mine');
    const others: Promise<Answer>[] = [];
    onStep = (step) => {
      if (step !== '3.admit') return;
      onStep = null;
      others.push(gateway.client.put(to, 'theirs'));
    };
    const answer = await run({ from: 'v/appearing', to });
    const [other] = await Promise.all(others);
    // Whoever came first, nothing was overwritten unseen: a PUT that came second replaced, and says so.
    expect([verdictOf(answer), other?.status, at(to)]).toEqual(
      answer.status === 201 ? ['201', 200, 'theirs'] : ['409 already_exists', 201, 'theirs'],
    );
  });
});

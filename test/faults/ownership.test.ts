import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { GatewayProcess } from '../support/gateway-process.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { auditOf } from '../support/history.ts';
import { get, lease, post, put, send } from '../support/http-client.ts';
import { until } from '../support/until.ts';

/** Whose the data directory is, whose a volume is, and what a journal that was lost or put back may still do. */

async function directories(count: number): Promise<string[]> {
  const made = await Promise.all(Array.from({ length: count }, newDirectory));
  onTestFinished(async () => void (await Promise.all(made.map(removeDirectory))));
  return made;
}

const ONE_LINE = /^fencegate: [^\n]+\n$/;

describe('two processes over one data directory', () => {
  it('B36: the second ends at once with code 1 and one line while the first lives, and the first goes on', async () => {
    const [directory = ''] = await directories(1);
    const first = await GatewayProcess.start(directory);
    const second = await GatewayProcess.failing(directory);
    expect(second).toMatchObject({ code: 1, signal: null });
    expect(second.stderr).toMatch(ONE_LINE);
    expect(second.stderr).toContain(String(first.pid));
    expect((await put(first.url, 'v/a.txt', 'the first goes on')).status).toBe(201);
    expect((await readdir(join(directory, 'v', '.fencegate'))).filter((name) => /^[0-9a-f]{32}$/.test(name))).toHaveLength(1);
  });

  it('B36: it does so too while the first is silent, but not for long enough', async () => {
    const [directory = ''] = await directories(1);
    const first = await GatewayProcess.start(directory);
    first.signal('SIGSTOP');
    const second = await GatewayProcess.failing(directory);
    expect([second.code, second.stderr]).toEqual([1, expect.stringMatching(ONE_LINE)]);
    first.signal('SIGCONT');
    expect((await put(first.url, 'v/a.txt', 'awake again')).status).toBe(201);
  });

  it('R27: one that is silent for long enough is ended and taken over: leases, marks and files go on, and the log says so', async () => {
    const [directory = ''] = await directories(1);
    const first = await GatewayProcess.start(directory, { takeoverAfterMs: 1_000 });
    const held = await lease(first.url, ['v/ledger.csv']);
    expect((await put(first.url, 'v/ledger.csv', 'one', { 'x-fencing-token': held.token })).status).toBe(201);
    first.signal('SIGSTOP');
    const second = await until(async () => {
      const next = await GatewayProcess.spawn(directory, { takeoverAfterMs: 1_000 });
      await next.listening().catch(() => undefined);
      return next.url === '' ? null : next;
    });
    expect(await first.ended()).toMatchObject({ signal: 'SIGKILL' });
    expect((await put(second.url, 'v/ledger.csv', 'two', { 'x-fencing-token': held.token })).status).toBe(200);
    expect((await put(second.url, 'v/ledger.csv', 'three', { 'x-lock-wait-ms': '0' })).json).toMatchObject({ code: 'resource_locked' });
    expect(await auditOf(second.url, 'action=take_over')).toHaveLength(1);
    expect((await get(second.url, '/v1/audit/verify')).json).toMatchObject({ valid: true });
  });

  it('a clean end leaves nothing to take over', async () => {
    const [directory = ''] = await directories(1);
    const first = await GatewayProcess.start(directory);
    expect(await first.stop()).toMatchObject({ code: 0 });
    const second = await GatewayProcess.start(directory);
    expect(await auditOf(second.url, 'action=take_over')).toEqual([]);
    expect(await auditOf(second.url, 'action=start')).toHaveLength(2);
  });
});

/** Volume `v` of the first directory, and one of its own. */
const SHARED = (first: string): string => `volumes:\n  v:\n    path: "${first}/v"\n  own:\n    path: "{dir}/own"\n`;

describe('two gateways over one volume', () => {
  it('B36: when ownership leaves it no volume the second ends with code 1 and one line that names the volume', async () => {
    const [first = '', second = ''] = await directories(2);
    const owner = await GatewayProcess.start(first);
    const refused = await GatewayProcess.failing(second, { environment: { FENCEGATE_VOLUMES: `v=${first}/v` } });
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(ONE_LINE)]);
    expect(refused.stderr).toMatch(/\bv\b/);
    expect((await put(owner.url, 'v/a.txt', 'undisturbed')).status).toBe(201);
  });

  it('B36: with a volume of its own it serves that one, and the other stays closed also when its owner is gone', async () => {
    const [first = '', second = ''] = await directories(2);
    await mkdir(join(second, 'own'));
    const owner = await GatewayProcess.start(first);
    await put(owner.url, 'v/a.txt', 'of the owner');
    const other = await GatewayProcess.start(second, { yaml: SHARED(first) });
    const refused = await put(other.url, 'v/a.txt', 'of the other');
    expect([refused.status, refused.json['code'], refused.headers['retry-after']]).toEqual([503, 'volume_unavailable', expect.any(String)]);
    expect((await put(other.url, 'own/a.txt', 'its own')).status).toBe(201);
    await owner.kill();
    expect((await put(other.url, 'v/a.txt', 'of the other')).status).toBe(503);
    expect(await readFile(join(first, 'v', 'a.txt'), 'utf8')).toBe('of the owner');
    const audited = await auditOf(other.url, 'volume=v&outcome=rejected&code=volume_unavailable');
    expect(audited.reduce((sum, { count }) => sum + count, 0)).toBe(2);
  });

  it('adoption fences the owner that still runs: its tokens are void, its late writes fail, and the volume goes on elsewhere', async () => {
    const [first = '', second = ''] = await directories(2);
    await mkdir(join(second, 'own'));
    const owner = await GatewayProcess.start(first);
    const held = await lease(owner.url, ['v/a.txt']);
    await put(owner.url, 'v/a.txt', 'of the owner', { 'x-fencing-token': held.token });
    const other = await GatewayProcess.start(second, { yaml: SHARED(first) });
    const adopted = await post(other.url, '/v1/admin/volumes/v/adopt', { reason: 'the old host is going away' });
    expect([adopted.status, adopted.json['state']]).toEqual([200, 'open']);
    const late = await put(owner.url, 'v/a.txt', 'too late', { 'x-fencing-token': held.token });
    expect([late.status, late.json['code']]).toEqual([503, 'volume_unavailable']);
    expect((await put(other.url, 'v/a.txt', 'refused', { 'x-fencing-token': held.token })).json).toMatchObject({ code: 'stale_token' });
    const written = await put(other.url, 'v/a.txt', 'of the other');
    expect([written.status, BigInt(String(written.headers['x-fencing-token'])) > BigInt(held.token)]).toEqual([200, true]);
    await until(async () => ((await put(owner.url, 'v/a.txt', 'still too late')).status === 503 ? true : null));
    expect(await readFile(join(first, 'v', 'a.txt'), 'utf8')).toBe('of the other');
    expect(await auditOf(other.url, 'action=volume_adopt')).toHaveLength(1);
  });
});

describe('two gateways whose volumes lie in one another', () => {
  it('B36: the one inside is refused with code 1 and one line that says where the other begins, and nothing is made there', async () => {
    const [first = '', second = ''] = await directories(2);
    const inner = join(first, 'v', 'team', 'inner');
    await mkdir(inner, { recursive: true });
    const outer = await GatewayProcess.start(first);
    const refused = await GatewayProcess.failing(second, { environment: { FENCEGATE_VOLUMES: `b=${inner}` } });
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(ONE_LINE)]);
    expect(refused.stderr).toMatch(/\bb: .*\.\.\/\.\.\/\.fencegate\/owner/);
    expect(await readdir(inner)).toEqual([]);
    expect((await put(outer.url, 'v/team/inner/a.txt', 'of the outer')).status).toBe(201);
  });

  it('B36: with a volume of its own it serves that one, and the inner one stays closed to an adoption too, until the other is no volume any more', async () => {
    const [first = '', second = ''] = await directories(2);
    await mkdir(join(first, 'v', 'inner'), { recursive: true });
    await mkdir(join(second, 'own'));
    const outer = await GatewayProcess.start(first);
    const inside = `volumes:\n  inner:\n    path: "${first}/v/inner"\n  own:\n    path: "{dir}/own"\n`;
    const other = await GatewayProcess.start(second, { yaml: inside });
    expect((await put(other.url, 'inner/a.txt', 'x')).json).toMatchObject({ code: 'volume_unavailable' });
    expect((await put(other.url, 'own/a.txt', 'x')).status).toBe(201);
    expect((await get(other.url, '/v1/admin/doctor')).text).toContain('inside_another');
    expect((await post(other.url, '/v1/admin/volumes/inner/adopt', { reason: 'try' })).status).toBe(503);
    await outer.stop();
    await rm(join(first, 'v', '.fencegate'), { recursive: true });
    await other.stop();
    const again = await GatewayProcess.start(second, { yaml: inside });
    expect((await put(again.url, 'inner/a.txt', 'x')).status).toBe(201);
  });

  it('B36: the one around it writes nothing in there, whatever the verb, and says so in its records; everything else is its own', async () => {
    const [first = '', second = ''] = await directories(2);
    const inner = await GatewayProcess.start(first);
    const held = await lease(inner.url, ['v/d/a.txt']);
    await put(inner.url, 'v/d/a.txt', 'of the inner', { 'x-fencing-token': held.token });
    const outer = await GatewayProcess.start(second, { environment: { FENCEGATE_VOLUMES: `c=${first}` } });
    const before = await readFile(join(first, 'v', 'd', 'a.txt'), 'utf8');
    for (const path of ['/v1/files/c/v/d/a.txt', '/v1/files/c/v/new.txt', '/v1/files/c/v/d/e/new.txt'])
      expect((await send(outer.url, { method: 'PUT', path, body: 'of the outer' })).json).toMatchObject({ code: 'cross_volume', status: 409 });
    expect((await send(outer.url, { method: 'PUT', path: '/v1/files/c/v/made/' })).status).toBe(409);
    expect((await send(outer.url, { method: 'DELETE', path: '/v1/files/c/v/d/a.txt' })).status).toBe(409);
    expect((await put(outer.url, 'c/beside.txt', 'its own')).status).toBe(201);
    expect((await post(outer.url, '/v1/moves', { from: 'c/beside.txt', to: 'c/v/in.txt' })).status).toBe(409);
    expect([before, await readFile(join(first, 'v', 'd', 'a.txt'), 'utf8')]).toEqual(['of the inner', 'of the inner']);
    expect((await auditOf(outer.url, 'volume=c&code=cross_volume&outcome=rejected')).length).toBeGreaterThan(0);
    expect((await put(inner.url, 'v/d/a.txt', 'goes on', { 'x-fencing-token': held.token })).status).toBe(200);
  });
});

describe('a journal that was lost or put back', () => {
  it('R33: an older copy is noticed: reads go on, no lease comes back, writes wait for a rebase, and old tokens stay void', async () => {
    const [directory = ''] = await directories(1);
    const data = join(directory, 'data');
    const before = await GatewayProcess.start(directory);
    const old = await lease(before.url, ['v/a.txt']);
    await put(before.url, 'v/a.txt', 'one', { 'x-fencing-token': old.token });
    await before.stop();
    await cp(data, join(directory, 'copy'), { recursive: true });
    const later = await GatewayProcess.start(directory);
    const newer = await put(later.url, 'v/b.txt', 'two');
    await later.stop();
    await rm(data, { recursive: true });
    await cp(join(directory, 'copy'), data, { recursive: true });

    const restored = await GatewayProcess.start(directory);
    expect((await get(restored.url, '/v1/files/v/b.txt')).text).toBe('two');
    expect((await get(restored.url, '/readyz')).json).toMatchObject({ journal: { reason: expect.stringMatching(/rebase/) } });
    expect((await get(restored.url, '/v1/locks/v/a.txt')).json).toMatchObject({ holders: [] });
    for (const headers of [{}, { 'x-fencing-token': old.token }]) {
      expect((await put(restored.url, 'v/a.txt', 'refused', headers)).status).toBeGreaterThanOrEqual(400);
    }
    expect(await readFile(join(directory, 'v', 'a.txt'), 'utf8')).toBe('one');
    const rebased = await post(restored.url, '/v1/admin/fences/rebase', { reason: 'the disk was replaced' });
    expect(rebased.status).toBe(200);
    const written = await put(restored.url, 'v/a.txt', 'three');
    expect(written.status).toBe(200);
    for (const earlier of [newer.headers['x-fencing-token'], old.token]) {
      expect(BigInt(String(written.headers['x-fencing-token']))).toBeGreaterThan(BigInt(String(earlier)));
      expect((await put(restored.url, 'v/b.txt', 'stale', { 'x-fencing-token': String(earlier) })).json).toMatchObject({ code: 'stale_token' });
    }
    expect(await auditOf(restored.url, 'action=fence_rebase')).toHaveLength(1);
  });

  it('R33: a new journal under the old identity is noticed too, and tokens go on above every one ever issued', async () => {
    const [directory = ''] = await directories(1);
    const data = join(directory, 'data');
    const before = await GatewayProcess.start(directory);
    const first = await put(before.url, 'v/a.txt', 'one');
    await before.kill();
    for (const name of await readdir(data)) if (name.startsWith('journal')) await rm(join(data, name));
    const renewed = await GatewayProcess.start(directory);
    const refused = await put(renewed.url, 'v/a.txt', 'refused');
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, expect.any(String)]);
    expect((await post(renewed.url, '/v1/admin/fences/rebase', { reason: 'the journal is lost' })).status).toBe(200);
    const written = await put(renewed.url, 'v/a.txt', 'two');
    expect(BigInt(String(written.headers['x-fencing-token']))).toBeGreaterThan(BigInt(String(first.headers['x-fencing-token'])));
    await renewed.kill();
    const again = await GatewayProcess.start(directory);
    expect((await put(again.url, 'v/a.txt', 'three')).status).toBe(200);
  });

  it('with the whole data directory lost the volume belongs to somebody else: code 1 and one line', async () => {
    const [directory = ''] = await directories(1);
    const before = await GatewayProcess.start(directory);
    await put(before.url, 'v/a.txt', 'one');
    await before.kill();
    await rm(join(directory, 'data'), { recursive: true });
    const stranger = await GatewayProcess.failing(directory);
    expect([stranger.code, stranger.stderr]).toEqual([1, expect.stringMatching(ONE_LINE)]);
    expect(await readFile(join(directory, 'v', 'a.txt'), 'utf8')).toBe('one');
  });

  it('an owner file that nobody can read keeps the volume closed, and is left as it is', async () => {
    const [directory = ''] = await directories(1);
    const before = await GatewayProcess.start(directory);
    await before.stop();
    const owner = join(directory, 'v', '.fencegate', 'owner');
    await writeFile(owner, '{"owner":');
    const closed = await GatewayProcess.start(directory);
    expect((await put(closed.url, 'v/a.txt', 'x')).json).toMatchObject({ code: 'volume_unavailable' });
    expect((await get(closed.url, '/v1/admin/doctor')).json).toMatchObject({ healthy: false });
    expect(await readFile(owner, 'utf8')).toBe('{"owner":');
  });
});

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Step } from '../../src/domain/steps.ts';
import { jsonOf, textOf, verdictOf } from '../support/gateway-client.ts';
import { ask, head, rawVerdict } from '../support/raw-request.ts';
import { quietSnapshot, volumeSnapshot } from '../support/volume-snapshot.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** One name, one file, one fence. Over raw sockets: a library would put a target in order before it sends it (trap F20). */

let gateway: VolumesGateway;
let onStep: ((step: Step) => void) | null = null;

beforeAll(async () => {
  gateway = await startVolumes({ volumes: { v: { names: 'any' }, deep: {} }, steps: { reached: (step) => void onStep?.(step) } });
  mkdirSync(`${gateway.directory}/outside`);
  writeFileSync(`${gateway.directory}/outside/secret`, 'secret');
  writeFileSync(gateway.path('v/kept'), 'kept');
});
afterAll(async () => {
  await gateway.halt();
  // Some of its paths are longer than a call by path takes; rm walks down.
  execFileSync('rm', ['-rf', gateway.directory]);
});
beforeEach(() => {
  onStep = null;
});

const put = (target: string, body = 'x'): Promise<string> =>
  ask(
    gateway.raw(),
    Buffer.concat([Buffer.from(head(`PUT ${target}`, `Content-Length: ${Buffer.byteLength(body)}`), 'latin1'), Buffer.from(body)]),
  ).then(rawVerdict);
const get = (target: string): Promise<string> => ask(gateway.raw(), Buffer.from(head(`GET ${target}`), 'latin1')).then(rawVerdict);

describe('B15, B30: a path that is not canonical is 400 for every method, and nothing is touched', () => {
  const below = [
    '..',
    '.',
    '../outside/secret',
    '%2e%2e/outside/secret',
    '%2E%2e/outside/secret',
    '.%2e/outside/secret',
    '..%2f..%2foutside%2fsecret',
    '..%2Foutside',
    'a/../../outside/secret',
    'a/%2e%2e/%2e%2e/outside/secret',
    'a%2fb',
    'a%2Fb',
    '%2f',
    '%2fetc%2fpasswd',
    '/etc/passwd',
    'a//b',
    '//',
    'a//',
    'a/./b',
    'a/.',
    'a/..',
    './a',
    '%2e/a',
    'kept/..',
    'a%00b',
    '%00',
    'kept%00.txt',
    'a%0ab',
    'a%0d%0ab',
    'a%09b',
    'a%1fb',
    'a%7fb',
    'a%5cb',
    'a\\b',
    '..%5coutside',
    '..\\outside',
    '%ff',
    'a%c3',
    '%c0%ae%c0%ae/outside',
    '%c0%af',
    '%e0%80%af',
    '%ed%a0%80',
    '%f5%80%80%80',
    '%',
    '%1',
    '%zz',
    '%u002e',
    'a#b',
    'kept#',
    '.fencegate',
    '.fencegate/owner',
    '.fencegate/stamp',
    'd/.fencegate/x',
    '.nfs000000001',
    'd/.nfs1/x',
    '%2efencegate/owner',
    `${'x'.repeat(256)}`,
    `${'%C3%BC'.repeat(128)}`,
    `d/${'x'.repeat(256)}/y`,
    Array.from({ length: 17 }, () => 'y'.repeat(250)).join('/'),
  ];
  it.each(below)('%j', async (path) => {
    const before = await quietSnapshot(gateway.path('v'));
    expect(await put(`/v1/files/v/${path}`)).toBe('400 invalid_path');
    for (const target of [`PATCH /v1/files/v/${path}`, `DELETE /v1/files/v/${path}`, `POST /v1/files/v/${path}/`]) {
      // A name that ends with a slash, or only seems to, is of another kind, which does not have every method.
      const others = /\/$|#/.test(path) ? ['405 method_not_allowed'] : [];
      expect(['400 invalid_path', ...others]).toContain(
        rawVerdict(await ask(gateway.raw(), Buffer.from(head(target, 'Content-Length: 0'), 'latin1'))),
      );
    }
    expect(await get(`/v1/files/v/${path}`)).toMatch(/^(400 invalid_path|404 not_found)$/);
    expect(await get(`/v1/locks/v/${path}`)).toMatch(/^(400 invalid_path|404 not_found)$/);
    expect(volumeSnapshot(gateway.path('v'))).toEqual(before);
    expect([readFileSync(`${gateway.directory}/outside/secret`, 'utf8'), readdirSync(`${gateway.directory}/outside`)]).toEqual([
      'secret',
      ['secret'],
    ]);
  });

  it('the refusals are audited', async () => {
    const records = await gateway.client.audit({ code: 'invalid_path', limit: 1_000 });
    expect(records.reduce((sum, { count }) => sum + count, 0)).toBeGreaterThanOrEqual(4 * below.length - 8);
    for (const record of records) expect(record).toMatchObject({ outcome: 'rejected', status: 400 });
  });

  it('bytes that are not percent-encoded are no URL at all', async () => {
    for (const path of ['caf\u00e9', 'a\u0080', 'a\u0001b', 'a b']) expect(await put(`/v1/files/v/${path}`)).toBe('400 invalid_request');
  });

  it('hidden names do not exist for readers', async () => {
    for (const name of ['.fencegate/', '.fencegate/owner', '.nfs0001', 'd/.fencegate/'])
      expect(await get(`/v1/files/v/${name}`)).toBe('404 not_found');
    expect(existsSync(gateway.path('v/.fencegate/owner'))).toBe(true);
  });

  it('names of volumes are a closed form', async () => {
    for (const volume of ['V', 'v%2e', '..', '.', '%2e%2e', 'v%00', '-v', '_v', 'v'.repeat(64), 'v%2fkept', '', 'v '])
      expect(await put(`/v1/files/${volume}/a`)).toMatch(/^(404 (volume_not_found|not_found)|400 \w+)$/);
    expect(await put('/v1/files/v')).toMatch(/^40[45] /);
    expect(await put('/v1/files')).toMatch(/^404 /);
  });
});

describe('names in JSON are plain text, under the same rules', () => {
  it.each([
    'v/../x',
    'v/a/../b',
    'v/./a',
    'v//a',
    'v/a//b',
    'v/a/',
    'v/',
    'v',
    '/v/a',
    'v/a\\b',
    'v/a\u0000b',
    'v/a\nb',
    '../a',
    '.fencegate/a',
    'v/.fencegate/x',
    'v/.nfs1',
    `v/${'x'.repeat(256)}`,
    'v/\ud800',
    'V/a',
    '',
  ])('%j', async (name) => {
    const before = await quietSnapshot(gateway.path('v'));
    for (const answer of await Promise.all([
      gateway.client.post('/v1/moves', { from: name, to: 'v/new' }),
      gateway.client.post('/v1/moves', { from: 'v/kept', to: name }),
      gateway.client.post('/v1/copies', { from: 'v/kept', to: name }),
      gateway.client.post('/v1/leases', { resource: name }),
      gateway.client.post('/v1/leases', { resources: ['v/other', name] }),
    ]))
      expect(verdictOf(answer)).toMatch(/^400 (invalid_path|invalid_request)$/);
    expect(volumeSnapshot(gateway.path('v'))).toEqual(before);
  });

  it('a percent sign in JSON is a percent sign', async () => {
    await gateway.client.put('v/50%25', 'x');
    expect((await gateway.client.post('/v1/moves', { from: 'v/50%25', to: 'v/a%2Fb' })).status).toBe(201);
    expect(readFileSync(gateway.path('v/a%2Fb'), 'utf8')).toBe('x');
  });
});

describe('a name that is good', () => {
  const NAMES = [
    'a+b',
    'a b',
    ' leading',
    'trailing ',
    'trailing.',
    '...',
    '..a',
    'a..',
    '.hidden',
    '-rf',
    '~',
    '50%',
    '%2e%2e',
    '%2F',
    'a?b',
    'a#b',
    'a&b=c;d',
    "it's",
    '"quoted"',
    '*',
    '<a|b>',
    '$(reboot)',
    '`id`',
    'a:b',
    'CON',
    'nul.txt',
    '@',
    '[x]',
    '{x}',
    '.fencegatex',
    '.nf',
    '.Nfs1',
    'Ünïcödé',
    'e\u0301',
    '\u00e9',
    'Grundbuch\u00a0neu',
    'книга.csv',
    'βιβλίο',
    'ספר',
    'كتاب',
    'किताब',
    'หนังสือ',
    '帳簿',
    '장부',
    'ბოლო',
    '𓂀',
    '👩‍💼.txt',
    'a\u202eb',
    '\ufeffbom',
    'ﬁ',
    'ß',
    'İ',
    '\ud83d\ude00',
    'ü'.repeat(127),
    'x'.repeat(255),
  ];
  it.each(NAMES)('%j is the file of exactly this name, for every verb', async (name) => {
    const { client } = gateway;
    expect((await client.put(`v/names/${name}`, name)).status).toBe(201);
    expect(readdirSync(gateway.path('v/names'))).toEqual([name]);
    expect(textOf(await client.get(`v/names/${name}`))).toBe(name);
    expect(jsonOf<{ entries: { name: string }[] }>(await client.get('v/names/')).entries).toMatchObject([{ name, name_base64: null, type: 'file' }]);
    expect((await client.patch(`v/names/${name}`, 'append', '!')).status).toBe(200);
    const held = await client.lease(`v/names/${name}`);
    expect(jsonOf(await client.send('GET', `/v1/locks/v/names/${encodeURIComponent(name)}`))).toMatchObject({
      resource: `v/names/${name}`,
      holders: [{ lease_ref: held.lease_ref }],
    });
    expect((await client.post('/v1/moves', { from: `v/names/${name}`, to: 'v/names/renamed' }, { 'x-lock-wait-ms': '0' })).status).toBe(423);
    expect((await client.post('/v1/moves', { from: `v/names/${name}`, to: 'v/names/renamed', from_token: held.fencing_token })).status).toBe(201);
    expect(textOf(await client.get('v/names/renamed'))).toBe(`${name}!`);
    expect(await client.audit({ path: `names/${name}`, action: 'append' })).toMatchObject([{ outcome: 'committed', resource: `v/names/${name}` }]);
    expect((await client.delete('v/names/renamed')).status).toBe(204);
  });

  it('a plus sign in a URL is a plus sign, %2B too, and %20 a blank', async () => {
    expect([await put('/v1/files/v/plus/1+1', '1'), await put('/v1/files/v/plus/1%2B1', '2'), await put('/v1/files/v/plus/1%201', '3')]).toEqual([
      '201',
      '200',
      '201',
    ]);
    expect(readdirSync(gateway.path('v/plus')).sort()).toEqual(['1 1', '1+1']);
  });

  it('is decoded once: what decodes to a percent sign stays one', async () => {
    expect(await put('/v1/files/v/%252e%252e%252foutside')).toBe('201');
    expect(existsSync(gateway.path('v/%2e%2e%2foutside'))).toBe(true);
  });

  it('may come as an absolute target, and with a query that means nothing', async () => {
    expect(await put('http://localhost/v1/files/v/absolute')).toBe('201');
    expect(await put('/v1/files/v/absolute?x=../y')).toBe('200');
    expect(await get('/v1/files/v/absolute?x=%00')).toBe('200');
  });

  it('may lie deep, and long: 4,096 bytes and 200 levels', async () => {
    const long = Array.from({ length: 16 }, () => 'z'.repeat(255)).join('/');
    const deep = Array.from({ length: 200 }, (_, level) => level.toString(36)).join('/');
    for (const path of [long, deep]) {
      expect(await put(`/v1/files/deep/${path}`, 'down here')).toBe('201');
      expect(textOf(await gateway.client.get(`deep/${path}`))).toBe('down here');
    }
    expect(await put(`/v1/files/deep/${long}x`)).toBe('400 invalid_path');
  });
});

describe('B30: a directory that is swapped for a link while a write is under way', () => {
  const STEPS: readonly Step[] = ['2.name', '3.admit', '4.stage', '4.staged', '5.lease', '6.enter', '6.checked', '6.intent', '6.before_apply'];
  it.each(STEPS)('at %s never leads out of the volume', async (at) => {
    const target = `v/swap-${at}`;
    await gateway.client.put(`${target}/secret`, 'inside');
    onStep = (step) => {
      if (step !== at) return;
      onStep = null;
      renameSync(gateway.path(target), gateway.path(`${target}-old`));
      symlinkSync(`${gateway.directory}/outside`, gateway.path(target));
    };
    const answer = await gateway.client.put(`${target}/secret`, 'written');
    expect(verdictOf(answer)).toMatch(/^(200|404 not_found|409 symbolic_link)$/);
    expect(readFileSync(`${gateway.directory}/outside/secret`, 'utf8')).toBe('secret');
    expect(readFileSync(gateway.path(`${target}-old/secret`), 'utf8')).toBe(answer.status === 200 ? 'written' : 'inside');
    rmSync(gateway.path(target));
  });

  it('F24: a directory that is replaced by another one does not get a late file', async () => {
    await gateway.client.put('v/month/kept', 'x');
    const before = readdirSync(gateway.path('v/month'));
    onStep = (step) => {
      if (step !== '4.staged') return;
      onStep = null;
      renameSync(gateway.path('v/month'), gateway.path('v/last-month'));
      mkdirSync(gateway.path('v/month'));
    };
    expect(verdictOf(await gateway.client.put('v/month/late', 'late'))).toBe('404 not_found');
    expect([readdirSync(gateway.path('v/month')), readdirSync(gateway.path('v/last-month'))]).toEqual([[], before]);
  });
});

import { mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Step } from '../../src/domain/steps.ts';
import { type Answer, fileTarget, jsonOf, verdictOf } from '../support/gateway-client.ts';
import { quietSnapshot, volumeSnapshot } from '../support/volume-snapshot.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** F23: the names that a volume lets be made. Names of other kinds are in `names.test.ts`. */

const B = 'boundary-of-the-test';

let gateway: VolumesGateway;
let onStep: ((step: Step) => void) | null = null;
beforeAll(async () => {
  gateway = await startVolumes({
    volumes: { v: {}, free: { names: 'any' }, jobs: { path: null } },
    steps: { reached: (step) => void onStep?.(step) },
  });
});
afterAll(() => gateway.stop());
beforeEach(() => {
  onStep = null;
});

const upload = (directory: string, name: string): Promise<Answer> => {
  const file = `--${B}\r\nContent-Disposition: form-data; name="f"; filename="${name}"\r\n\r\nx\r\n`;
  const good = `--${B}\r\nContent-Disposition: form-data; name="f"; filename="good"\r\n\r\nx\r\n`;
  return gateway.client.send('POST', `${fileTarget(directory)}/`, {
    headers: { 'content-type': `multipart/form-data; boundary=${B}` },
    body: `${good}${file}--${B}--\r\n`,
  });
};

/** Every way of making a name, each with a file at `v/plain` to make it from. */
const WAYS: Readonly<Record<string, (name: string) => Promise<Answer>>> = {
  put: (name) => gateway.client.put(name, 'x'),
  'put if absent': (name) => gateway.client.put(name, 'x', { 'if-none-match': '*' }),
  append: (name) => gateway.client.patch(name, 'append', 'x'),
  move: (name) => gateway.client.post('/v1/moves', { from: `${name.split('/')[0]}/plain`, to: name }),
  copy: (name) => gateway.client.post('/v1/copies', { from: `${name.split('/')[0]}/plain`, to: name }),
  'copy from another volume': (name) => gateway.client.post('/v1/copies', { from: 'free/plain', to: name }),
  mkdir: (name) => gateway.client.send('PUT', `${fileTarget(name)}/`),
};
const ODD = ['CON', 'nul.txt', 'a:b', 'what?', 'end.', 'end ', '-rf', 'exe\u202etxt.pdf', 'aux/inside', 'new/-x/deep'];

describe('F23: a volume takes portable names only, unless it is told otherwise', () => {
  it.each(ODD)('%j is made by no verb, and the refusal says why and what lifts it', async (name) => {
    await gateway.client.put('v/plain', 'x');
    await gateway.client.put('free/plain', 'x');
    const before = await quietSnapshot(gateway.path('v'));
    for (const [way, make] of Object.entries(WAYS)) {
      const answer = await make(`v/${name}`);
      expect([way, verdictOf(answer)]).toEqual([way, '400 invalid_path']);
      expect(jsonOf<{ detail: string }>(answer).detail).toMatch(/^A name that would be made (is|has|begins|ends) .*"names: any"/);
    }
    expect(volumeSnapshot(gateway.path('v'))).toEqual(before);
  });

  it.each(['a:b', 'CON', '-rf', 'end.'])('an upload with a file called %j makes none of its files', async (name) => {
    const before = await quietSnapshot(gateway.path('v'));
    for (const directory of ['v', 'v/made']) expect(verdictOf(await upload(directory, name))).toBe('400 invalid_path');
    expect(verdictOf(await upload(`v/${name}`, 'plain'))).toBe('400 invalid_path');
    expect(await quietSnapshot(gateway.path('v'))).toEqual(before);
  });

  it.each(Object.entries(WAYS))('with names: any every name is made: %s', async (way, make) => {
    for (const name of ODD) {
      await gateway.client.put('free/plain', 'x');
      expect([name, (await make(`free/${way}/${name}`)).status]).toEqual([name, 201]);
    }
  });
});

describe('F23: a name that is there already is no name to be made', () => {
  it('a file is read, replaced, appended to, copied over, uploaded over, moved away and deleted', async () => {
    const { client } = gateway;
    await client.put('v/other', 'other');
    for (const name of ['a:b', 'c:d', 'e:f']) writeFileSync(gateway.path(`v/${name}`), 'old');
    expect((await client.get('v/a:b')).status).toBe(200);
    expect((await client.put('v/a:b', 'new')).status).toBe(200);
    expect((await client.patch('v/a:b', 'append', '!')).status).toBe(200);
    expect((await client.patch('v/a:b', 'bytes=0-0', 'N')).status).toBe(200);
    expect(readFileSync(gateway.path('v/a:b'), 'utf8')).toBe('New!');
    expect((await client.post('/v1/copies', { from: 'v/other', to: 'v/a:b', overwrite: true })).status).toBe(200);
    expect((await client.post('/v1/moves', { from: 'v/other', to: 'v/e:f', overwrite: true })).status).toBe(200);
    expect((await upload('v', 'a:b')).status).toBe(200);
    expect((await client.post('/v1/moves', { from: 'v/a:b', to: 'v/moved' })).status).toBe(201);
    expect((await client.delete('v/c:d')).status).toBe(204);
    expect((await client.delete('v/e:f')).status).toBe(204);
  });

  it('a directory takes new files, and new directories of portable names; it may be made again in vain, and removed', async () => {
    const { client } = gateway;
    mkdirSync(gateway.path('v/2025: old'));
    expect((await client.put('v/2025: old/new.csv', 'x')).status).toBe(201);
    expect((await client.put('v/2025: old/q1/new.csv', 'x')).status).toBe(201);
    expect(verdictOf(await client.put('v/2025: old/q:2/new.csv', 'x'))).toBe('400 invalid_path');
    expect((await client.send('PUT', `${fileTarget('v/2025: old')}/`)).status).toBe(204);
    expect((await client.delete('v/2025: old/new.csv')).status).toBe(204);
    expect((await client.delete('v/2025: old/q1/new.csv')).status).toBe(204);
    expect((await client.send('DELETE', `${fileTarget('v/2025: old/q1')}/`)).status).toBe(204);
    expect((await client.send('DELETE', `${fileTarget('v/2025: old')}/`)).status).toBe(204);
  });

  const gone = (name: string) => (step: Step) => {
    if (step !== '6.enter') return;
    onStep = null;
    rmSync(gateway.path(name));
  };
  it.each(['put', 'append', 'copy', 'move'])('one that goes away before the commit section is not made again: %s', async (way) => {
    await gateway.client.put('v/plain', 'x');
    await gateway.client.put('v/over', 'x');
    writeFileSync(gateway.path('v/was:there'), 'old');
    onStep = gone('v/was:there');
    const over = { from: 'v/plain', to: 'v/was:there', overwrite: true };
    const answer =
      way === 'move' || way === 'copy'
        ? await gateway.client.post(way === 'move' ? '/v1/moves' : '/v1/copies', over)
        : await (WAYS[way] as (typeof WAYS)['put'])('v/was:there');
    expect(verdictOf(answer)).toBe('400 invalid_path');
    expect(readdirSync(gateway.path('v'))).not.toContain('was:there');
  });

  it('a directory that goes away before the commit section is not made again', async () => {
    mkdirSync(gateway.path('v/x:y'));
    onStep = (step) => {
      if (step !== '6.enter') return;
      onStep = null;
      rmdirSync(gateway.path('v/x:y'));
    };
    expect(verdictOf(await gateway.client.put('v/x:y/not/there/yet', 'x'))).toBe('400 invalid_path');
    expect(readdirSync(gateway.path('v'))).not.toContain('x:y');
  });
});

describe('F23: a lease makes no name', () => {
  it.each(['v', 'jobs'])('so on volume %s everything that is a path may be leased', async (volume) => {
    for (const name of ODD) {
      const held = await gateway.client.lease(`${volume}/${name}`);
      expect(held['resource']).toBe(`${volume}/${name}`);
      await gateway.client.release(held);
    }
  });
});

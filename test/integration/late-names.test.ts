import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Step } from '../../src/domain/steps.ts';
import { type Answer, eventually, verdictOf } from '../support/gateway-client.ts';
import { stagedNames } from '../support/volume-snapshot.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** Somebody beside the gateway makes a name after the gateway has looked at it for the last time, and before it makes the name itself. */

let gateway: VolumesGateway;
/** What happens when the next write stands before its apply. */
let meanwhile: (() => void) | null = null;
beforeAll(async () => {
  const reached = (step: Step): undefined => {
    if (step !== '6.before_apply') return;
    meanwhile?.();
    meanwhile = null;
  };
  gateway = await startVolumes({ volumes: { v: {} }, steps: { reached } });
  await gateway.client.put('v/source', 'ours');
});
afterAll(() => gateway.stop());

const ONLY_NEW = { 'if-none-match': '*' };
const append = { 'x-update-range': 'append', 'content-type': 'application/octet-stream' };
const form = (name: string): { headers: Record<string, string>; body: string } => ({
  headers: { ...ONLY_NEW, 'content-type': 'multipart/form-data; boundary=b' },
  body: `--b\r\ncontent-disposition: form-data; name="f"; filename="${name}"\r\n\r\nours\r\n--b--\r\n`,
});

type Write = (name: string) => Promise<Answer>;
const WRITES: readonly (readonly [string, string, Write])[] = [
  ['PUT with If-None-Match: *', '412 precondition_failed', (name) => gateway.client.put(`v/${name}`, 'ours', ONLY_NEW)],
  [
    'an append with If-None-Match: *',
    '412 precondition_failed',
    (name) => gateway.client.send('PATCH', `/v1/files/v/${name}`, { headers: { ...append, ...ONLY_NEW }, body: 'ours' }),
  ],
  ['an upload with If-None-Match: *', '412 precondition_failed', (name) => gateway.client.send('POST', '/v1/files/v/', form(name))],
  ['COPY', '409 already_exists', (name) => gateway.client.post('/v1/copies', { from: 'v/source', to: `v/${name}` })],
  ['MOVE', '409 already_exists', (name) => gateway.client.post('/v1/moves', { from: 'v/source', to: `v/${name}` })],
  ['the making of a directory', '409 already_exists', (name) => gateway.client.put(`v/${name}/`, '')],
];

async function refusedAndUntouched(name: string, answer: Answer, verdict: string): Promise<void> {
  expect([verdictOf(answer), readFileSync(gateway.path(`v/${name}`), 'utf8')]).toEqual([verdict, 'theirs']);
  await eventually(
    () => stagedNames(gateway.path('v')),
    (names) => names.length === 0,
  );
}

describe('a file that another program makes', () => {
  it.each(WRITES)('before %s is looked at: %s', async (what, verdict, write) => {
    const name = `early ${what.replaceAll(/\W+/g, '-')}`.replaceAll(' ', '-');
    writeFileSync(gateway.path(`v/${name}`), 'theirs');
    await refusedAndUntouched(name, await write(name), verdict);
  });

  it.each(WRITES)('after the last look of %s is the same refusal: %s, and the record says aborted', async (what, verdict, write) => {
    const name = `late ${what.replaceAll(/\W+/g, '-')}`.replaceAll(' ', '-');
    meanwhile = () => writeFileSync(gateway.path(`v/${name}`), 'theirs');
    const answer = await write(name);
    await refusedAndUntouched(name, answer, verdict);
    const records = await gateway.client.audit({ volume: 'v', path: name });
    const code = verdict.slice('412 '.length);
    expect(records.map(({ outcome, code: recorded }) => [outcome, recorded])).toContainEqual(['aborted', code]);
  });

  it('after the last look of a PUT that may replace it is replaced: a PUT asks for no condition', async () => {
    meanwhile = () => writeFileSync(gateway.path('v/replaced'), 'theirs');
    expect([(await gateway.client.put('v/replaced', 'ours')).status, readFileSync(gateway.path('v/replaced'), 'utf8')]).toEqual([201, 'ours']);
  });

  it('as a directory is told as one', async () => {
    meanwhile = () => mkdirSync(gateway.path('v/directory'));
    expect(verdictOf(await gateway.client.put('v/directory', 'ours', ONLY_NEW))).toBe('409 is_a_directory');
  });
});

it('a directory that comes to be after the last look is what the making of a directory was asked for', async () => {
  meanwhile = () => mkdirSync(gateway.path('v/both'));
  expect((await gateway.client.put('v/both/', '')).status).toBe(201);
  expect((await gateway.client.put('v/both/', '')).status).toBe(204);
});

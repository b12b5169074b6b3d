import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Step } from '../../src/domain/steps.ts';
import { type Answer, eventually, type Headers, jsonOf, verdictOf } from '../support/gateway-client.ts';
import { head, rawVerdict } from '../support/raw-request.ts';
import { quietSnapshot, stagedNames, volumeSnapshot } from '../support/volume-snapshot.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** Several files in one request: all or nothing. */

const B = 'boundary-of-the-test';
const END = `--${B}--\r\n`;
const TYPE = `multipart/form-data; boundary=${B}`;

let gateway: VolumesGateway;
/** What happens once when the next write reaches a step. */
let event: { readonly at: Step; readonly run: () => void } | null = null;
beforeAll(async () => {
  const steps = {
    reached: (step: Step) => {
      const due = event;
      if (step !== due?.at) return undefined;
      event = null;
      due.run();
      return undefined;
    },
  };
  gateway = await startVolumes({
    volumes: { v: {}, small: { limits: { body_bytes: 2_000 } } },
    steps,
    environment: { FENCEGATE_BODY_MAX_BYTES: '2000000', FENCEGATE_LOG_LEVEL: 'silent' },
  });
  mkdirSync(gateway.path('v/in'));
});
afterAll(() => gateway.stop());

const part = (filename: string | null, text: string, name = 'f'): string =>
  `--${B}\r\nContent-Disposition: form-data; name="${name}"${filename === null ? '' : `; filename="${filename}"`}\r\n\r\n${text}\r\n`;
const post = (directory: string, body: string | Buffer, headers: Headers = {}): Promise<Answer> =>
  gateway.client.send('POST', `/v1/files/${directory}`, { headers: { 'content-type': TYPE, ...headers }, body });
const at = (name: string): string => readFileSync(gateway.path(name), 'utf8');

describe('an upload of several files', () => {
  it('answers with all of them: 201 when all are new, else 200; the directory is made', async () => {
    for (const [status, text] of [
      [201, 'one'],
      [200, 'other'],
    ] as const) {
      const answer = await post('v/made/here/', part('a.txt', text) + part('b.txt', 'two', 'g') + END);
      const file = (path: string, bytes: string) => ({
        resource: `v/made/here/${path}`,
        path: `made/here/${path}`,
        size_bytes: bytes.length,
        etag: expect.stringMatching(/^"/),
        fencing_token: expect.any(String),
        durability: 'synced',
      });
      expect(answer.status).toBe(status);
      expect(jsonOf(answer)).toMatchObject({ operation_id: answer.headers['x-operation-id'], files: [file('a.txt', text), file('b.txt', 'two')] });
      expect([at('v/made/here/a.txt'), at('v/made/here/b.txt')]).toEqual([text, 'two']);
      const { files } = jsonOf<{ files: { resource: string; etag: string }[] }>(answer);
      for (const { resource, etag } of files) expect((await gateway.client.get(resource)).headers['etag']).toBe(etag);
      const records = await gateway.client.audit({ operation_id: answer.headers['x-operation-id'] ?? '' });
      expect(records.map(({ action, outcome, path }) => [action, outcome, path]).sort()).toEqual([
        ['upload', 'committed', 'made/here/a.txt'],
        ['upload', 'committed', 'made/here/b.txt'],
      ]);
    }
    expect((await post('v/made/here/', part('a.txt', 'again') + part('new.txt', '') + END)).status).toBe(200);
  });

  it('goes into the root of a volume too, with one file or an empty one, with any bytes', async () => {
    expect((await post('v/', part('root.txt', 'x') + END)).status).toBe(201);
    expect((await post('v/in/', part('empty', '') + END)).status).toBe(201);
    const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, i) => i % 256));
    expect((await post('v/in/', Buffer.concat([Buffer.from(part('bytes', '').slice(0, -2)), bytes, Buffer.from(`\r\n${END}`)]))).status).toBe(201);
    expect(readFileSync(gateway.path('v/in/bytes')).equals(bytes)).toBe(true);
  });

  it.each(['ÿ.txt', '帳簿.csv', 'a b.txt', "it's.txt", 'a+b', '50%25.txt', 'x'.repeat(255)])('the file name %j is taken as it is', async (name) => {
    expect((await post('v/in/', Buffer.from(part(name, 'named') + END, 'utf8'))).status).toBe(201);
    expect(at(`v/in/${name}`)).toBe('named');
  });
});

describe('names that are not one plain name are 400, and no file of the upload is written', () => {
  it.each([
    '',
    '.',
    '..',
    '../up',
    'a/b',
    '/etc/passwd',
    'a\\\\b',
    '..\\\\up',
    'C:\\\\temp\\\\x',
    '.fencegate',
    '.nfs001',
    'a\u0001b',
    'x'.repeat(256),
  ])('%j', async (name) => {
    const before = await quietSnapshot(gateway.path('v'));
    expect(verdictOf(await post('v/in/', part('good', 'x') + part(name, 'x') + END))).toMatch(/^400 (invalid_path|invalid_request)$/);
    expect(volumeSnapshot(gateway.path('v'))).toEqual(before);
  });

  it('also the same name twice', async () => {
    const before = await quietSnapshot(gateway.path('v'));
    expect(verdictOf(await post('v/in/', part('twice', '1') + part('other', '2') + part('twice', '3') + END))).toBe('400 invalid_path');
    expect(volumeSnapshot(gateway.path('v'))).toEqual(before);
  });
});

describe('B19: a malformed form is refused, whatever the parser says of it, and leaves nothing', () => {
  const whole = part('m-a', 'one') + part('m-b', 'two') + END;
  const malformed: (readonly [string, string, string])[] = (
    [
      ['cut before the end', whole.slice(0, -END.length)],
      ['cut inside the last delimiter', whole.slice(0, -6)],
      ['cut inside a part', whole.slice(0, 150)],
      ['cut inside the head of a part', whole.slice(0, 60)],
      ['nothing', ''],
      ['garbage', 'hello'],
      ['only the end', END],
      ['another boundary', whole.replaceAll(B, 'other')],
      ['no boundary', whole, 'multipart/form-data'],
      ['an empty boundary', whole, 'multipart/form-data; boundary='],
      ['a field', part('m-a', 'one') + part(null, 'v') + END],
      ['no filename at all', part(null, 'v') + END],
      ['a part without a disposition', `--${B}\r\n\r\nx\r\n${END}`],
      ['a reserved name', part('m-a', 'x', '__proto__') + END],
      ['a head without end', `--${B}\r\nContent-Disposition: form-data; name="f"; filename="m-a"${'x'.repeat(90_000)}`],
      ['a delimiter that is not at a line', `--${B}\r\nContent-Disposition: form-data; name="f"; filename="m-a"\r\n\r\nx--${B}--\r\n`],
    ] satisfies [string, string, string?][]
  ).map(([what, body, type = TYPE]) => [what, body, type]);
  /** All at once: a form after whose last byte the parser says nothing more costs two seconds of waiting. */
  const verdicts = new Map<string, string>();
  let untouched: boolean;
  beforeAll(async () => {
    const before = await quietSnapshot(gateway.path('v'));
    await Promise.all(
      malformed.map(async ([what, body, type]) => verdicts.set(what, verdictOf(await post('v/in/', body, { 'content-type': type })))),
    );
    untouched = isDeepStrictEqual(volumeSnapshot(gateway.path('v')), before);
  });
  it.each(malformed)('%s', (what) => {
    expect([verdicts.get(what), untouched]).toEqual(['400 invalid_request', true]);
  });

  it('every prefix of a good form, cut anywhere, with a length that fits', async () => {
    const before = await quietSnapshot(gateway.path('v'));
    const cuts = Array.from({ length: 24 }, (_, i) => Math.floor((i * (whole.length - 4)) / 24));
    const verdicts = await Promise.all(cuts.map(async (cut) => verdictOf(await post('v/in/', whole.slice(0, cut)))));
    expect(new Set(verdicts)).toEqual(new Set(['400 invalid_request']));
    expect(volumeSnapshot(gateway.path('v'))).toEqual(before);
  });

  it('not multipart at all is 415; a form on a file name is 405', async () => {
    expect(verdictOf(await post('v/in/', '{}', { 'content-type': 'application/json' }))).toBe('415 unsupported_media_type');
    expect(verdictOf(await post('v/in', whole))).toBe('405 method_not_allowed');
  });
});

describe('B1, B17: a body that is not whole is no upload', () => {
  it('cut off by the client in the second file: 400, both files stay as they were', async () => {
    const connection = gateway.raw();
    connection.send(`${head('POST /v1/files/v/in/', `Content-Type: ${TYPE}`, 'Content-Length: 5000')}${part('cut-a', 'one')}${part('cut-b', 'two')}`);
    connection.socket.end();
    expect(rawVerdict(await connection.answer())).toBe('400 incomplete_body');
    expect([existsSync(gateway.path('v/in/cut-a')), stagedNames(gateway.path('v'))]).toEqual([false, []]);
    expect(await gateway.client.audit({ code: 'incomplete_body', action: 'upload' })).toMatchObject([{ outcome: 'aborted', path: 'in' }]);
  });

  it('reset in the middle: staged files go, too', async () => {
    const connection = gateway.raw();
    connection.send(
      `${head('POST /v1/files/v/in/', `Content-Type: ${TYPE}`, 'Content-Length: 5000')}${part('reset-a', 'one')}${part('reset-b', 'two')}`,
    );
    await eventually(
      () => stagedNames(gateway.path('v')),
      (names) => names.length > 0,
    );
    connection.socket.resetAndDestroy();
    await eventually(
      () => stagedNames(gateway.path('v')),
      (names) => names.length === 0,
    );
    expect(existsSync(gateway.path('v/in/reset-a'))).toBe(false);
  });

  it('a file over the limit is never taken as a shorter file, whether it says its length or not', async () => {
    const before = await quietSnapshot(gateway.path('v'));
    const big = part('big-a', 'fine') + part('big-b', 'x'.repeat(2_100_000)) + part('big-c', 'fine') + END;
    expect(verdictOf(await post('v/in/', big))).toBe('413 body_too_large');
    const chunked = async function* (): AsyncGenerator<Buffer> {
      yield Buffer.from(big);
    };
    const answer = await gateway.client
      .send('POST', '/v1/files/v/in/', { headers: { 'content-type': TYPE }, body: chunked() })
      .then(verdictOf, (error: Error) => error.message);
    expect(answer).toMatch(/^413 body_too_large$|other side closed|ECONNRESET|EPIPE/);
    const small = async function* (): AsyncGenerator<Buffer> {
      yield Buffer.from(part('small-a', 'x'.repeat(2_500)) + END);
    };
    expect(verdictOf(await gateway.client.send('POST', '/v1/files/small/', { headers: { 'content-type': TYPE }, body: small() }))).toBe(
      '413 body_too_large',
    );
    expect([volumeSnapshot(gateway.path('v')), volumeSnapshot(gateway.path('small'))]).toEqual([before, {}]);
  });
});

describe('all or nothing', () => {
  it('when one name cannot be written, none is', async () => {
    mkdirSync(gateway.path('v/in/a-directory'));
    symlinkSync('nowhere', gateway.path('v/in/a-link'));
    const held = await gateway.client.lease('v/in/a-held-one');
    const before = await quietSnapshot(gateway.path('v'));
    for (const [name, verdict] of [
      ['a-directory', '409 is_a_directory'],
      ['a-link', '409 symbolic_link'],
      ['a-held-one', '423 resource_locked'],
    ] as const) {
      expect(verdictOf(await post('v/in/', part('aon-1', 'x') + part(name, 'x') + part('aon-2', 'x') + END, { 'x-lock-wait-ms': '10' }))).toBe(
        verdict,
      );
    }
    expect(volumeSnapshot(gateway.path('v'))).toEqual(before);
    await gateway.client.release(held);
  });

  it.each<Step>(['3.admit', '4.staged', '6.enter', '6.checked'])('when the gateway fails at %s, none is', async (step) => {
    await post('v/in/', part('step-a', 'old') + END);
    const before = await quietSnapshot(gateway.path('v'));
    event = {
      at: step,
      run: () => {
        throw new Error('a fault of the gateway itself');
      },
    };
    expect(verdictOf(await post('v/in/', part('step-a', 'new') + part('step-b', 'new') + END))).toBe('500 internal');
    await eventually(
      () => stagedNames(gateway.path('v')),
      (names) => names.length === 0,
    );
    expect(volumeSnapshot(gateway.path('v'))).toEqual(before);
  });

  it('a directory in the way of the second file puts the first one back', async () => {
    await post('v/in/', part('back-a', 'old') + END);
    event = { at: '6.before_apply', run: () => mkdirSync(gateway.path('v/in/back-c')) };
    const answer = await post('v/in/', part('back-a', 'new') + part('back-b', 'new') + part('back-c', 'new') + END);
    expect(verdictOf(answer)).toBe('409 is_a_directory');
    expect([at('v/in/back-a'), existsSync(gateway.path('v/in/back-b'))]).toEqual(['old', false]);
    await eventually(
      () => stagedNames(gateway.path('v')),
      (names) => names.length === 0,
    );
    const records = await gateway.client.audit({ path_prefix: 'in/back-', code: 'is_a_directory' });
    expect(records.map(({ path, outcome }) => [path, outcome]).sort()).toEqual([
      ['in/back-a', 'aborted'],
      ['in/back-b', 'aborted'],
      ['in/back-c', 'aborted'],
    ]);
  });

  it('conditions are for every file: If-None-Match: * makes only new ones', async () => {
    await post('v/in/', part('cond-a', 'old') + END);
    expect(verdictOf(await post('v/in/', part('cond-a', 'new') + part('cond-b', 'new') + END, { 'if-none-match': '*' }))).toBe(
      '412 precondition_failed',
    );
    expect([at('v/in/cond-a'), existsSync(gateway.path('v/in/cond-b'))]).toEqual(['old', false]);
    expect((await post('v/in/', part('cond-b', 'new') + part('cond-c', 'new') + END, { 'if-none-match': '*' })).status).toBe(201);
  });
});

describe('a token', () => {
  it('must be of one lease over all the names', async () => {
    const { client } = gateway;
    const both = await client.lease(['v/in/t-a', 'v/in/t-b']);
    const answer = await post('v/in/', part('t-b', '2') + part('t-a', '1') + END, { 'x-fencing-token': both.fencing_token });
    expect([answer.status, answer.headers['x-fencing-token']]).toEqual([201, both.fencing_token]);
    expect(verdictOf(await post('v/in/', part('t-a', 'x') + part('t-other', 'x') + END, { 'x-fencing-token': both.fencing_token }))).toBe(
      '403 token_not_issued',
    );
    const one = await client.lease('v/in/t-other');
    expect(verdictOf(await post('v/in/', part('t-a', 'x') + part('t-other', 'x') + END, { 'x-fencing-token': one.fencing_token }))).toMatch(
      /^(403 token_not_issued|412 stale_token)$/,
    );
    await client.release(both);
    expect(verdictOf(await post('v/in/', part('t-a', 'x') + END, { 'x-fencing-token': both.fencing_token }))).toBe('412 lease_ended');
    expect([at('v/in/t-a'), existsSync(gateway.path('v/in/t-other'))]).toEqual(['1', false]);
  });
});

describe('B2: an upload of as many files as are allowed', () => {
  it('is written whole, leaves nothing behind, and others write and read meanwhile', async () => {
    const names = Array.from({ length: 1_000 }, (_, i) => `many-${i}`);
    const form = (text: string): string => names.map((name) => part(name, text)).join('') + END;
    for (const [status, text] of [
      [201, 'one'],
      [200, 'two'],
    ] as const) {
      let isOver = false;
      const upload = post('v/many/', form(text)).finally(() => {
        isOver = true;
      });
      const others = async (who: string): Promise<Set<string>> => {
        const seen = new Set<string>();
        const turn = async (): Promise<void> => {
          seen.add(String((await gateway.client.send('PUT', `/v1/files/v/in/other-${who}`, { body: 'x' })).status));
          seen.add(String((await gateway.client.get(`v/in/other-${who}`)).status));
        };
        while (!isOver) await turn();
        await turn();
        return seen;
      };
      const seen = await Promise.all(['a', 'b'].map(others));
      expect((await upload).status).toBe(status);
      for (const one of seen) expect([...one].filter((each) => each !== '200' && each !== '201')).toEqual([]);
      expect(names.filter((name) => at(`v/many/${name}`) !== text)).toEqual([]);
      await eventually(
        () => stagedNames(gateway.path('v')),
        (left) => left.length === 0,
      );
    }
  }, 120_000);
});

import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { SystemClock } from '../../src/observability/system-clock.ts';
import { startHttp, type TestServer } from '../support/http-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startHttp({ bodyBytesMax: 100_000 }, (deps) => Object.assign(deps, { clock: new SystemClock() }));
});
afterAll(() => server.close());
beforeEach(() => {
  server.deps.writer.calls.length = 0;
});

const B = 'xyz';
const part = (filename: string | null, text: string, name = 'f') =>
  `--${B}\r\nContent-Disposition: form-data; name="${name}"${filename === null ? '' : `; filename="${filename}"`}\r\n${filename === null ? '' : 'Content-Type: text/plain\r\n'}\r\n${text}\r\n`;
const END = `--${B}--\r\n`;
const post = (body: string, type = `multipart/form-data; boundary=${B}`, path = 'demo/in/') =>
  server.fetch(`/v1/files/${path}`, { method: 'POST', body, headers: { 'content-type': type } });
const codeOf = async (answer: Response) => [answer.status, ((await answer.json()) as { code: string }).code];

test('several files reach the writer with their names as sent', async () => {
  const answer = await post(part('a.txt', 'one') + part('b.txt', 'two') + END);
  expect(answer.status).toBe(201);
  expect(server.deps.writer.calls[0]?.files.map(({ filename, bytes }) => [filename, bytes.toString()])).toEqual([
    ['a.txt', 'one'],
    ['b.txt', 'two'],
  ]);
  expect(server.deps.writer.calls[0]?.resource?.name).toBe('demo/in');
});

test('files may be uploaded into the root of a volume', async () => {
  expect((await post(part('a.txt', 'one') + END, undefined, 'demo/')).status).toBe(201);
  expect(server.deps.writer.calls[0]?.resource).toBeNull();
});

test('a name with a separator is handed on whole, for the writer to refuse', async () => {
  await post(part('../../etc/passwd', 'x') + END);
  expect(server.deps.writer.calls[0]?.files[0]?.filename).toBe('../../etc/passwd');
});

test.each([
  ['alone', [0xff]],
  ['half of a character', [0x61, 0xc3]],
  ['an overlong form', [0xc0, 0xaf]],
  ['a surrogate', [0xed, 0xa0, 0x80]],
])('a name that is not UTF-8 is 400 invalid_path and never stored under another name: %s', async (_what, name) => {
  const [before = '', after = ''] = part('#.txt', 'x').split('#');
  const body = Buffer.concat([Buffer.from(before), Buffer.from(name), Buffer.from(after + END)]);
  const answer = await server.fetch('/v1/files/demo/in/', {
    method: 'POST',
    body,
    headers: { 'content-type': `multipart/form-data; boundary=${B}` },
  });
  expect(await codeOf(answer)).toEqual([400, 'invalid_path']);
  expect(server.deps.writer.calls).toEqual([]);
});

test.each([
  ['B19: no closing delimiter', part('a.txt', 'one')],
  ['B19: cut inside a part', part('a.txt', 'one').slice(0, -2)],
  ['B19: cut inside the head of a part', `--${B}\r\nContent-Disposition: form-da`],
  ['B19: nothing but garbage', 'hello'],
  ['B19: another boundary', part('a.txt', 'one').replaceAll(B, 'other') + END.replaceAll(B, 'other')],
  ['a field that is no file', part(null, 'value') + END],
  ['a field after a file', part('a.txt', 'one') + part(null, 'value') + END],
  ['no part at all', END],
  ['an empty body', ''],
  ['the boundary inside a part, with more on its line', part('a.txt', `one\r\n--${B}X\r\ntwo`) + END],
  ['a delimiter with blanks behind it, which would hide a part', part('a.txt', 'one') + part('b.txt', 'two').replace(B, `${B}  `) + END],
  ['a reserved part name', part('a.txt', 'x', '__proto__') + END],
])('%s is 400 invalid_request, and the upload does not succeed', async (_what, body) => {
  const answer = await post(body);
  expect(await codeOf(answer)).toEqual([400, 'invalid_request']);
  expect(server.deps.writer.calls).toEqual([]);
});

test('B17: a file over the limit is never taken as a shorter file', async () => {
  const answer = await post(part('a.txt', 'x'.repeat(150_000)) + END);
  expect(await codeOf(answer)).toEqual([413, 'body_too_large']);
  expect(server.deps.writer.calls).toEqual([]);
});

test('more files than the limit are refused', async () => {
  const answer = await post(
    Array.from({ length: 1_001 }, (_, i) => part(`f${i}`, ''))
      .join('')
      .slice(0, 99_000) + END,
  );
  expect((await codeOf(answer))[1]).toMatch(/^(body_too_large|invalid_request)$/);
  expect(server.deps.writer.calls).toEqual([]);
});

const digestOf = (algorithm: 'sha256' | 'sha512', bytes: string) =>
  `${algorithm.replace('sha', 'sha-')}=:${createHash(algorithm).update(bytes).digest('base64')}:`;
const announcing = (body: string, ...fields: readonly [string, string][]) =>
  server.fetch('/v1/files/demo/in/', { method: 'POST', body, headers: [['content-type', `multipart/form-data; boundary=${B}`], ...fields] });

test.each(['content-digest', 'repr-digest'])('%s is of the whole form as it is sent', async (field) => {
  for (const after of ['', 'an epilogue', `\r\n${'x'.repeat(60_000)}`]) {
    const form = part('a.txt', 'one') + part('b.txt', 'two') + END + after;
    for (const algorithm of ['sha256', 'sha512'] as const) {
      expect((await announcing(form, [field, digestOf(algorithm, form)])).status).toBe(201);
      expect(server.deps.writer.calls.pop()?.files).toHaveLength(2);
    }
    const wrong = [
      digestOf('sha256', form.slice(0, -1)),
      digestOf('sha256', 'one'),
      digestOf('sha256', 'two'),
      digestOf('sha512', ''),
      `${digestOf('sha256', form)}, ${digestOf('sha512', 'one')}`,
    ];
    for (const value of wrong) expect(await codeOf(await announcing(form, [field, value]))).toEqual([400, 'digest_mismatch']);
  }
  expect(server.deps.writer.calls).toEqual([]);
});

test('a form with one part is not mistaken for its part', async () => {
  const form = part('a.txt', 'x') + END;
  expect(await codeOf(await announcing(form, ['content-digest', digestOf('sha256', 'x')]))).toEqual([400, 'digest_mismatch']);
  expect(server.deps.writer.calls).toEqual([]);
});

test('a digest that cannot be read is 400, before the form is asked for', async () => {
  expect(await codeOf(await announcing(part('a.txt', 'x') + END, ['content-digest', 'sha-256=abc']))).toEqual([400, 'invalid_request']);
});

test('what follows the closing delimiter has to arrive', async () => {
  const client = server.raw();
  client.send(
    `POST /v1/files/demo/in/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=${B}\r\nContent-Length: 5000\r\n\r\n${part('a.txt', 'one')}${END}`,
  );
  client.socket.end();
  expect(JSON.parse((await client.answer()).body)).toMatchObject({ code: 'incomplete_body' });
  expect(server.deps.writer.calls).toEqual([]);
});

test('an upload that is not multipart is 415, before the body is asked for', async () => {
  expect(await codeOf(await post('{}', 'application/json'))).toEqual([415, 'unsupported_media_type']);
});

test('multipart without a boundary is 400', async () => {
  expect(await codeOf(await post(part('a.txt', 'one') + END, 'multipart/form-data'))).toEqual([400, 'invalid_request']);
});

test('a connection that ends in the middle of a form is incomplete_body', async () => {
  const client = server.raw();
  client.send(
    `POST /v1/files/demo/in/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=${B}\r\nContent-Length: 5000\r\n\r\n${part('a.txt', 'one')}`,
  );
  client.socket.end();
  expect(JSON.parse((await client.answer()).body)).toMatchObject({ code: 'incomplete_body' });
});

test('a PUT may have any Content-Type, also multipart and nonsense', async () => {
  for (const type of [`multipart/form-data; boundary=${B}`, 'nonsense', 'application/json', 'text/plain; charset=koi8-r']) {
    const answer = await server.fetch('/v1/files/demo/a.txt', { method: 'PUT', body: 'as it is', headers: { 'content-type': type } });
    expect(answer.status).toBe(201);
    expect(server.deps.writer.calls.at(-1)?.bytes.toString()).toBe('as it is');
  }
});

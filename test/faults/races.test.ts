import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GatewayProcess } from '../support/gateway-process.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { auditOf, History } from '../support/history.ts';
import { type Answer, formOf, get, patiently, post, put, type Sending } from '../support/http-client.ts';
import { TIER } from '../support/tier.ts';
import { TWO_VOLUMES } from '../support/write-kinds.ts';

/** Many clients, one file, real sockets: exactly one wins where one may win, and nobody's bytes are lost or doubled. */

let directory: string;
let gateway: GatewayProcess;
let rounds = 0;

beforeAll(async () => {
  directory = await newDirectory();
  await mkdir(join(directory, 'w'));
  gateway = await GatewayProcess.start(directory, { yaml: TWO_VOLUMES, outlivesTest: true });
});
afterAll(async () => {
  expect(await new History(directory).checkWhole(gateway.url)).toEqual([]);
  await gateway.kill();
  await removeDirectory(directory);
});

const CLIENTS = TIER.raceClients;
const clients = <T>(run: (client: number) => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: CLIENTS }, (_, client) => run(client)));
const won = (answers: readonly Answer[]): Answer[] => answers.filter(({ status }) => status < 300);
const losses = (answers: readonly Answer[]): string[] => [
  ...new Set(answers.filter(({ status }) => status > 299).map(({ status, json }) => `${status} ${String(json['code'])}`)),
];

function newFile(volume = 'v'): string {
  rounds += 1;
  return `${volume}/race-${rounds}.txt`;
}

/** What a client tries with the version that all of them know. */
type Try = (file: string, client: number) => Sending;
const replacing: Try = (file, client) => ({ method: 'PUT', path: `/v1/files/${file}`, body: `client ${client}` });
const appending: Try = (file, client) => ({
  method: 'PATCH',
  path: `/v1/files/${file}`,
  headers: { 'x-update-range': 'append' },
  body: `+client ${client}`,
});
const ranging: Try = (file, client) => ({
  method: 'PATCH',
  path: `/v1/files/${file}`,
  headers: { 'x-update-range': 'bytes=0-' },
  body: `client ${client}`,
});
const deleting: Try = (file) => ({ method: 'DELETE', path: `/v1/files/${file}` });

describe('the same version', () => {
  it.each([
    ['PUT', 'v', [replacing]],
    ['append', 'v', [appending]],
    ['range by copy-on-write', 'v', [ranging]],
    ['range in place', 'w', [ranging]],
    ['DELETE', 'v', [deleting]],
    ['any of them', 'w', [replacing, appending, ranging, deleting]],
  ] as const)(`B4: ${CLIENTS} clients with If-Match on one ETag: exactly one 2xx, the others 412 (%s)`, async (_name, volume, tries) => {
    for (let round = 0; round < TIER.raceRounds; round += 1) {
      const file = newFile(volume);
      const { etag = '' } = (await put(gateway.url, file, 'the version that all know')).headers;
      const answers = await clients((client) => {
        const trying = tries[client % tries.length] ?? replacing;
        const { headers, ...rest } = trying(file, client);
        return patiently(gateway.url, { ...rest, headers: { ...headers, 'if-match': etag } });
      });
      expect(won(answers)).toHaveLength(1);
      // Behind a DELETE there is nothing any more that could match.
      expect(losses(answers).filter((loss) => loss !== '412 precondition_failed' && loss !== '404 not_found')).toEqual([]);
      const committed = (await auditOf(gateway.url, `path=${file.slice(2)}&volume=${volume}&outcome=committed`)).filter(
        ({ etag_after: after }) => after !== etag,
      );
      expect(committed).toHaveLength(1);
    }
  });

  it(`B7: ${CLIENTS} clients that make one file with If-None-Match: *: exactly one 201`, async () => {
    for (let round = 0; round < TIER.raceRounds; round += 1) {
      const file = newFile();
      const answers = await clients((client) => put(gateway.url, file, `client ${client}`, { 'if-none-match': '*' }));
      const winner = answers.findIndex(({ status }) => status === 201);
      expect([won(answers).length, losses(answers)]).toEqual([1, ['412 precondition_failed']]);
      expect((await get(gateway.url, `/v1/files/${file}`)).text).toBe(`client ${winner}`);
    }
  });

  it(`${CLIENTS} clients move one file to names of their own: one has it, the others find nothing`, async () => {
    for (let round = 0; round < TIER.raceRounds; round += 1) {
      const file = newFile();
      await put(gateway.url, file, 'wanted by all');
      const answers = await clients((client) => post(gateway.url, '/v1/moves', { from: file, to: `${file}-${client}` }));
      expect([won(answers).length, losses(answers)]).toEqual([1, ['404 not_found']]);
      const found = await clients((client) => get(gateway.url, `/v1/files/${file}-${client}`));
      expect(found.map(({ status }) => status)).toEqual(answers.map(({ status }) => (status < 300 ? 200 : 404)));
    }
  });
});

describe('appends', () => {
  const APPENDERS = 6;

  async function appendAll(file: string, write: (line: string) => Promise<void>): Promise<string[]> {
    await put(gateway.url, file, '');
    const lines = Array.from({ length: APPENDERS }, (_, client) =>
      Array.from({ length: TIER.appendsEach }, (_, n) => `client ${client} line ${n}\n`),
    );
    await Promise.all(
      lines.map(async (own) => {
        for (const line of own) await write(line);
      }),
    );
    return lines.flat().sort();
  }
  const linesOf = async (file: string): Promise<string[]> => (await get(gateway.url, `/v1/files/${file}`)).text.split(/(?<=\n)/).sort();

  it(`B8: ${APPENDERS} clients x ${TIER.appendsEach}: every line is there exactly once`, async () => {
    const file = newFile();
    const sent = await appendAll(file, async (line) => {
      const answer = await patiently(gateway.url, {
        method: 'PATCH',
        path: `/v1/files/${file}`,
        headers: { 'x-update-range': 'append' },
        body: line,
      });
      expect(answer.status).toBe(200);
    });
    expect(await linesOf(file)).toEqual(sent);
    expect(await auditOf(gateway.url, `path=${file.slice(2)}&action=append&outcome=committed`)).toHaveLength(sent.length);
  });

  it(`B8: ${APPENDERS} clients that each name the size they know: who is wrong gets the right one, and every line is there exactly once`, async () => {
    const file = newFile();
    let refused = 0;
    const sent = await appendAll(file, async (line) => {
      for (let offset = 0; ; ) {
        const headers = { 'x-update-range': 'append', 'upload-offset': String(offset) };
        const answer = await patiently(gateway.url, { method: 'PATCH', path: `/v1/files/${file}`, headers, body: line });
        if (answer.status === 200) return;
        expect([answer.status, answer.json['code']]).toEqual([409, 'offset_mismatch']);
        refused += 1;
        offset = Number(answer.json['expected_offset']);
      }
    });
    expect(await linesOf(file)).toEqual(sent);
    expect(refused).toBeGreaterThan(0);
  });
});

describe('readers beside writers', () => {
  const SIZE = 200_000;
  const versionOf = (n: number): string => `${n} `.repeat(SIZE).slice(0, SIZE + n);

  it.each([
    ['whole files', (file: string, n: number): Sending => ({ method: 'PUT', path: `/v1/files/${file}`, body: versionOf(n) })],
    [
      'copied ranges',
      (file: string, n: number): Sending => ({
        method: 'PATCH',
        path: `/v1/files/${file}`,
        headers: { 'x-update-range': 'bytes=0-' },
        body: versionOf(n),
      }),
    ],
  ])('B21: see one version or the other, never a mixture, and its ETag is of these very bytes (%s)', async (_name, write) => {
    const file = newFile();
    await put(gateway.url, file, versionOf(0));
    const versions = TIER.raceRounds * 3;
    let writing = true;
    const bytesOf = new Map<string, string>();
    const wrong: string[] = [];
    const readers = Promise.all(
      Array.from({ length: 4 }, async () => {
        while (writing) {
          const { status, text, headers } = await get(gateway.url, `/v1/files/${file}`);
          const n = text.length - SIZE;
          if (status !== 200 || text !== versionOf(n)) wrong.push(`status ${status}, ${text.length} bytes`);
          const digest = createHash('sha256').update(text).digest('hex');
          const etag = headers.etag ?? '';
          if ((bytesOf.get(etag) ?? digest) !== digest) wrong.push(`${etag} has two contents`);
          bytesOf.set(etag, digest);
        }
      }),
    );
    for (let n = 1; n <= versions; n += 1) expect((await patiently(gateway.url, write(file, n))).status).toBe(200);
    writing = false;
    await readers;
    expect(wrong).toEqual([]);
  });

  it('one upload of several files that race for the same names: each file is whole, and all are of one upload', async () => {
    for (let round = 0; round < TIER.raceRounds; round += 1) {
      rounds += 1;
      const folder = `v/several-${rounds}`;
      const answers = await Promise.all(
        Array.from({ length: 6 }, (_, client) => {
          const { headers, body } = formOf({ 'a.txt': `a ${client}`, 'b.txt': `b ${client}`, 'c.txt': `c ${client}` });
          return patiently(gateway.url, { method: 'POST', path: `/v1/files/${folder}/`, headers: { ...headers, 'x-lock-wait-ms': '30000' }, body });
        }),
      );
      expect(answers.map(({ status }) => status).filter((status) => status > 299)).toEqual([]);
      const read = await Promise.all(['a', 'b', 'c'].map((name) => get(gateway.url, `/v1/files/${folder}/${name}.txt`)));
      expect(new Set(read.map(({ text }) => text.slice(2))).size).toBe(1);
    }
  });
});

describe('one idempotency key', () => {
  it(`${CLIENTS} clients send it at once: one write, and everybody who asks again gets its answer`, async () => {
    for (let round = 0; round < TIER.raceRounds; round += 1) {
      const file = newFile();
      await put(gateway.url, file, '');
      const request: Sending = {
        method: 'PATCH',
        path: `/v1/files/${file}`,
        headers: { 'x-update-range': 'append', 'idempotency-key': `"race-${rounds}"` },
        body: 'once',
      };
      const answers = await clients(() => patiently(gateway.url, request));
      expect(losses(answers).filter((loss) => loss !== '409 idempotency_in_progress')).toEqual([]);
      const again = await patiently(gateway.url, request);
      expect(new Set([...won(answers), again].map(({ headers }) => headers['x-operation-id'])).size).toBe(1);
      expect((await get(gateway.url, `/v1/files/${file}`)).text).toBe('once');
    }
  });
});

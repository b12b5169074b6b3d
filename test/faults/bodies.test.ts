import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GatewayProcess } from '../support/gateway-process.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { auditOf, History } from '../support/history.ts';
import { attempt, get, lease, put, send } from '../support/http-client.ts';
import { RawConnection } from '../support/raw-http.ts';
import { head, rawVerdict } from '../support/raw-request.ts';
import { until } from '../support/until.ts';
import { TWO_VOLUMES, tokenHeader, type WriteKind, writeKinds } from '../support/write-kinds.ts';

/** Bodies that end too early, stand still, crawl, or are not what was announced: real sockets, and nothing may be seen of them (I3, I5). */

const IDLE_MS = 1_000;
const LEAST_BYTES_PER_SECOND = 1_000;

let directory: string;
let history: History;
let gateway: GatewayProcess;
let rounds = 0;

beforeAll(async () => {
  directory = await newDirectory();
  await mkdir(join(directory, 'w'));
  history = new History(directory);
  gateway = await GatewayProcess.start(directory, {
    yaml: TWO_VOLUMES,
    outlivesTest: true,
    environment: { FENCEGATE_UPLOAD_IDLE_MS: String(IDLE_MS), FENCEGATE_UPLOAD_MIN_BYTES_PER_SECOND: String(LEAST_BYTES_PER_SECOND) },
  });
});
afterAll(async () => {
  await gateway.kill();
  await removeDirectory(directory);
});

interface Upload {
  readonly connection: RawConnection;
  readonly requestId: string;
  readonly body: string;
}

/** The head, and the first `share` of the body; or of a chunked body, whose last chunk then never comes. */
function begin(kind: WriteKind, token: string | null, share: number, how: 'length' | 'chunks' = 'length'): Upload {
  rounds += 1;
  const requestId = `cut-${process.pid}-${rounds}`;
  const connection = new RawConnection(gateway.port);
  const { method, path, headers = {}, body = '' } = kind.request;
  const text = String(body);
  const part = text.slice(0, Math.floor(text.length * share));
  const fields = Object.entries({ ...headers, ...tokenHeader(token), 'x-request-id': requestId }).map(([name, value]) => `${name}: ${String(value)}`);
  if (how === 'length') connection.send(head(`${method} ${path}`, ...fields, `Content-Length: ${text.length}`) + part);
  else connection.send(`${head(`${method} ${path}`, ...fields, 'Transfer-Encoding: chunked')}${part.length.toString(16)}\r\n${part}\r\n`);
  return { connection, requestId, body: text };
}

/** The kinds that have a body. */
const withBody = writeKinds('names')
  .filter(({ request }) => request.body !== undefined && !request.path.endsWith('s'))
  .map(({ name }) => name);

function kindNamed(name: string): WriteKind {
  rounds += 1;
  const kind = writeKinds(`r${rounds}`).find((one) => one.name === name);
  if (kind === undefined) throw new Error(`no kind ${name}`);
  return kind;
}

const aborted = (requestId: string): Promise<object> =>
  until(async () => (await auditOf(gateway.url, `request_id=${requestId}&outcome=aborted`))[0] ?? null);

/** Every way in which the client's side of a connection can fail it, as the gateway sees it. */
const FAULTS = [
  ['FIN', (upload: Upload) => void upload.connection.socket.end(), 'incomplete_body'],
  ['RST', (upload: Upload) => void upload.connection.socket.resetAndDestroy(), 'incomplete_body'],
  ['silence', () => undefined, 'upload_timeout'],
] as const;

describe.each(FAULTS)('a body that ends in %s', (_name, fault, code) => {
  it.each(withBody)('B1, B2: %s changes nothing, leaves nothing, and is audited as aborted; its token stays good', async (name) => {
    const kind = kindNamed(name);
    const held = await history.prepare(gateway.url, kind, true);
    const upload = begin(kind, held?.token ?? null, 0.95);
    fault(upload);
    expect(await aborted(upload.requestId)).toMatchObject({ code, fencing_token: held?.token, count: 1 });
    upload.connection.close();
    const noted = history.note(kind, upload.requestId, held, null);
    expect(await history.check(gateway.url, [noted], () => 'before')).toEqual([]);
    expect(await history.writeNext(gateway.url, [noted])).toEqual([]);
  });
});

describe('a body whose end never came', () => {
  it('B2: in chunks, without the last one, it is not a whole file', async () => {
    const kind = kindNamed('PUT that replaces');
    await history.prepare(gateway.url, kind, false);
    const before = await get(gateway.url, kind.request.path);
    const { connection, requestId } = begin(kind, null, 1, 'chunks');
    connection.socket.end();
    await aborted(requestId);
    const after = await get(gateway.url, kind.request.path);
    expect([after.text, after.headers.etag]).toEqual([before.text, before.headers.etag]);
    expect(await history.leftovers()).toEqual([]);
  });

  it('is told so while its connection still carries an answer: 400 after half a close, 408 after silence', async () => {
    const cut = begin(kindNamed('PUT that creates, and its parents'), null, 0.5);
    cut.connection.socket.end();
    expect(rawVerdict(await cut.connection.answer())).toBe('400 incomplete_body');
    const idle = begin(kindNamed('PUT that creates, and its parents'), null, 0.5);
    expect(rawVerdict(await idle.connection.answer())).toBe('408 upload_timeout');
  });

  it('B14, R27: it holds no lock meanwhile, so the next request of the same client goes ahead at once, at the exact offset', async () => {
    await put(gateway.url, 'v/half-open.txt', '0123456789');
    const append = (body: string, offset: number) => ({
      method: 'PATCH',
      path: '/v1/files/v/half-open.txt',
      headers: { 'x-update-range': 'append', 'upload-offset': offset, 'x-lock-wait-ms': '0' },
      body,
    });
    const stalled = new RawConnection(gateway.port);
    stalled.send(`${head('PATCH /v1/files/v/half-open.txt', 'X-Update-Range: append', 'Upload-Offset: 10', 'Content-Length: 6')}abc`);
    await until(async () => ((await auditOf(gateway.url, 'path=half-open.txt')).length > 0 ? true : null));
    expect((await send(gateway.url, append('abcdef', 10))).status).toBe(200);
    expect((await get(gateway.url, '/v1/files/v/half-open.txt')).text).toBe('0123456789abcdef');
    stalled.send('def');
    const late = await stalled.answer();
    expect([late.status, JSON.parse(late.body)]).toEqual([409, expect.objectContaining({ code: 'offset_mismatch', expected_offset: 16 })]);
    expect((await get(gateway.url, '/v1/files/v/half-open.txt')).text).toBe('0123456789abcdef');
  });

  it('R26: an append that is sent again while the first stands still is stored once', async () => {
    await put(gateway.url, 'v/twice.txt', 'start:');
    const first = new RawConnection(gateway.port);
    first.send(`${head('PATCH /v1/files/v/twice.txt', 'X-Update-Range: append', 'Content-Length: 6', 'Idempotency-Key: "once"')}abc`);
    await until(async () => {
      const again = await send(gateway.url, {
        method: 'PATCH',
        path: '/v1/files/v/twice.txt',
        headers: { 'x-update-range': 'append', 'idempotency-key': '"once"' },
        body: 'abcdef',
      });
      return again.status === 409 && again.json['code'] === 'idempotency_in_progress' ? true : null;
    });
    first.send('def');
    const { status, headers } = await first.answer();
    expect(status).toBe(200);
    const replayed = await send(gateway.url, {
      method: 'PATCH',
      path: '/v1/files/v/twice.txt',
      headers: { 'x-update-range': 'append', 'idempotency-key': '"once"' },
      body: 'abcdef',
    });
    expect([replayed.status, replayed.headers['idempotency-replayed'], replayed.headers['x-operation-id']]).toEqual([
      200,
      'true',
      headers['x-operation-id'],
    ]);
    expect((await get(gateway.url, '/v1/files/v/twice.txt')).text).toBe('start:abcdef');
  });

  it('B5: readers never wait for it: the old file is served as long as it arrives', async () => {
    const kind = kindNamed('PUT that replaces');
    await history.prepare(gateway.url, kind, false);
    const before = await get(gateway.url, kind.request.path);
    const { connection, body } = begin(kind, null, 0.5);
    const seen = await Promise.all(Array.from({ length: 20 }, () => get(gateway.url, kind.request.path)));
    expect(seen.filter(({ status, text }) => status !== 200 || text !== before.text)).toEqual([]);
    connection.send(body.slice(Math.floor(body.length / 2)));
    expect((await connection.answer()).status).toBe(200);
    expect((await get(gateway.url, kind.request.path)).text).toBe(body);
  });

  it('slower than the least rate it is ended, however evenly its bytes come', async () => {
    const connection = new RawConnection(gateway.port);
    connection.send(head('PUT /v1/files/v/slow.txt', 'Content-Length: 100000'));
    const drip = setInterval(() => connection.send('x'), 20);
    try {
      expect(rawVerdict(await connection.answer())).toBe('408 upload_timeout');
    } finally {
      clearInterval(drip);
    }
    expect((await get(gateway.url, '/v1/files/v/slow.txt')).status).toBe(404);
    expect(await history.leftovers()).toEqual([]);
  });

  it('R29: a lease that ends while the body arrives ends the upload; kept alive by the flowing bytes it does not', async () => {
    const upload = async (keepAlive: boolean, name: string) => {
      const held = await lease(gateway.url, [`v/${name}`], 1_000);
      const connection = new RawConnection(gateway.port);
      connection.send(head(`PUT /v1/files/v/${name}`, `X-Fencing-Token: ${held.token}`, `X-Lease-Keepalive: ${keepAlive}`, 'Content-Length: 50000'));
      let sent = 0;
      const flow = setInterval(() => {
        const bytes = Math.min(500, 50_000 - sent);
        sent += bytes;
        connection.send('x'.repeat(bytes));
      }, 25);
      try {
        return rawVerdict(await connection.answer());
      } finally {
        clearInterval(flow);
      }
    };
    expect(await Promise.all([upload(false, 'lapsing.txt'), upload(true, 'kept.txt')])).toEqual(['412 lease_ended', '201']);
    expect((await get(gateway.url, '/v1/files/v/lapsing.txt')).status).toBe(404);
  });
});

describe('a body that is not what was announced', () => {
  const wrong = createHash('sha256').update('something else').digest('base64');

  it.each(withBody.filter((name) => name !== 'upload of three files'))('%s with another digest: 400, nothing changed', async (name) => {
    const kind = kindNamed(name);
    const held = await history.prepare(gateway.url, kind, true);
    for (const header of ['content-digest', 'repr-digest']) {
      rounds += 1;
      const requestId = `digest-${process.pid}-${rounds}`;
      const headers = { ...kind.request.headers, ...tokenHeader(held?.token ?? null), [header]: `sha-256=:${wrong}:`, 'x-request-id': requestId };
      const answer = await attempt(gateway.url, { ...kind.request, headers });
      expect([answer?.status, answer?.json['code']]).toEqual([400, 'digest_mismatch']);
      expect(await auditOf(gateway.url, `request_id=${requestId}`)).toMatchObject([
        { outcome: 'rejected', code: 'digest_mismatch', fencing_token: held?.token },
      ]);
      const noted = history.note(kind, requestId, held, answer);
      expect(await history.check(gateway.url, [noted], () => 'before')).toEqual([]);
    }
  });
});

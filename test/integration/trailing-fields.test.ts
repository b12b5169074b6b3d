import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ask, head, rawVerdict } from '../support/raw-request.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** Fields behind a chunked body (RFC 9110, 6.5; RFC 9530, 3): a digest there counts, and what decides about a write does not belong there. */

let gateway: VolumesGateway;
beforeAll(async () => {
  gateway = await startVolumes({ volumes: { v: {}, inplace: { range_writes: 'in-place' } } });
});
afterAll(() => gateway.stop());

const digest = (text: string, algorithm = 'sha256'): string =>
  `${algorithm.replace('sha', 'sha-')}=:${createHash(algorithm).update(text).digest('base64')}:`;

interface Chunked {
  readonly line: string;
  readonly headers?: readonly string[];
  readonly body: string;
  readonly trailers: readonly string[];
}

async function send({ line, headers = [], body, trailers }: Chunked): Promise<string> {
  const chunks = `${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n0\r\n${trailers.map((field) => `${field}\r\n`).join('')}\r\n`;
  return rawVerdict(await ask(gateway.raw(), head(line, ...headers, 'Transfer-Encoding: chunked') + chunks));
}

const put = (name: string, announced: string | null, ...trailers: string[]): Promise<string> =>
  send({ line: `PUT /v1/files/${name}`, headers: announced === null ? [] : [`Trailer: ${announced}`], body: 'hello', trailers });

describe('a digest behind the content', () => {
  it.each(['Content-Digest', 'Repr-Digest', 'content-digest'])('%s is compared before anything is visible', async (field) => {
    expect(await put('v/good', field, `${field}: ${digest('hello')}`)).toMatch(/^20[01]$/);
    expect(await put('v/good', field, `${field}: ${digest('hello', 'sha512')}`)).toBe('200');
    for (const algorithm of ['sha256', 'sha512']) {
      expect(await put('v/bad', field, `${field}: ${digest('something else', algorithm)}`)).toBe('400 digest_mismatch');
    }
    expect(existsSync(gateway.path('v/bad'))).toBe(false);
  });

  it('may be announced and not come', async () => {
    expect(await put('v/none', 'Content-Digest')).toBe('201');
  });

  it('that was not announced cannot be compared, so the write is refused', async () => {
    expect(await put('v/sudden', null, `Content-Digest: ${digest('hello')}`)).toBe('400 invalid_request');
    expect(existsSync(gateway.path('v/sudden'))).toBe(false);
  });

  it('that is no digest is refused', async () => {
    expect(await put('v/odd', 'Content-Digest', 'Content-Digest: sha-256=nothing')).toBe('400 invalid_request');
    expect(existsSync(gateway.path('v/odd'))).toBe(false);
  });

  it.each(['v', 'inplace'])('of a range write and an append on volume %s is of what was sent', async (volume) => {
    const name = `${volume}/record`;
    await gateway.client.put(name, '0123456789');
    const patch = (range: string, text: string): Promise<string> =>
      send({
        line: `PATCH /v1/files/${name}`,
        headers: [`X-Update-Range: ${range}`, 'Trailer: Content-Digest'],
        body: 'abc',
        trailers: [`Content-Digest: ${digest(text)}`],
      });
    for (const range of ['bytes=2-4', 'append']) expect([range, await patch(range, 'abd')]).toEqual([range, '400 digest_mismatch']);
    expect(readFileSync(gateway.path(name), 'utf8')).toBe('0123456789');
    for (const range of ['bytes=2-4', 'append']) expect([range, await patch(range, 'abc')]).toEqual([range, '200']);
    expect(readFileSync(gateway.path(name), 'utf8')).toBe('01abc56789abc');
  });

  it('of a form is of the whole form', async () => {
    const form = '--x\r\nContent-Disposition: form-data; name="f"; filename="in-a-form"\r\n\r\nhello\r\n--x--\r\n';
    const upload = (text: string): Promise<string> =>
      send({
        line: 'POST /v1/files/v/',
        headers: ['Content-Type: multipart/form-data; boundary=x', 'Trailer: Content-Digest'],
        body: form,
        trailers: [`Content-Digest: ${digest(text)}`],
      });
    expect(await upload('hello')).toBe('400 digest_mismatch');
    expect(existsSync(gateway.path('v/in-a-form'))).toBe(false);
    expect(await upload(form)).toBe('201');
  });
});

describe('what decides about a write', () => {
  it.each(['X-Fencing-Token', 'X-Lease-Id', 'If-Match', 'If-None-Match', 'Idempotency-Key', 'Authorization'])(
    '%s is refused in a trailer, announced or not: nothing is written without it',
    async (field) => {
      const value = field.startsWith('If-') ? '*' : '7';
      expect(await put('v/unfenced', field, `${field}: ${value}`)).toBe('400 invalid_request');
      expect(await put('v/unfenced', null, `${field}: ${value}`)).toBe('400 invalid_request');
      expect(existsSync(gateway.path('v/unfenced'))).toBe(false);
    },
  );

  it('and the digest of a whole file that a range write makes, too', async () => {
    await gateway.client.put('v/ranged', '0123456789');
    const request = { line: 'PATCH /v1/files/v/ranged', body: 'abc', trailers: [`Repr-Digest: ${digest('abc3456789')}`] };
    const headers = ['X-Update-Range: bytes=0-2'];
    expect(await send({ ...request, headers: [...headers, 'Trailer: Repr-Digest'] })).toBe('400 invalid_request');
    expect(await send({ ...request, headers })).toBe('400 invalid_request');
    expect(readFileSync(gateway.path('v/ranged'), 'utf8')).toBe('0123456789');
  });

  it('is in no trailer that means nothing here: that one is passed over', async () => {
    expect(await put('v/other', 'Server-Timing', 'Server-Timing: a;dur=1')).toBe('201');
  });
});

import { request as httpRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http';
import { until } from './until.ts';

/** A client that sends exactly what it is told, each request on a connection of its own: nothing is retried behind the test's back. */

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly text: string;
  /** The answer as JSON; of a problem document at least `code`. */
  readonly json: Record<string, unknown>;
}

export interface Sending {
  readonly method: string;
  /** From the slash on. */
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: Uint8Array | string;
  /** The second half of the body is sent when it resolves. */
  readonly afterHalf?: Promise<unknown>;
}

/** Rejects when the connection breaks before the whole answer came. */
export function send(url: string, sending: Sending): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { method, path, headers = {}, body, afterHalf } = sending;
    const length = body === undefined ? undefined : Buffer.byteLength(body);
    const sent = httpRequest(new URL(path, url), {
      method,
      agent: false,
      headers: { ...(length === undefined ? {} : { 'content-length': length }), connection: 'close', ...headers },
    });
    sent.on('error', reject);
    sent.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('error', reject).on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => resolve(answerOf(response.statusCode ?? 0, response.headers, Buffer.concat(chunks))));
      response.on('close', () => reject(new Error('the connection ended within the answer')));
    });
    if (afterHalf === undefined || body === undefined) return void sent.end(body);
    const bytes = Buffer.from(body);
    const half = Math.floor(bytes.length / 2);
    sent.write(bytes.subarray(0, half));
    void afterHalf.then(() => sent.end(bytes.subarray(half)));
  });
}

/** `null` when no answer came: the client does not know what became of its request. */
export async function attempt(url: string, sending: Sending): Promise<Answer | null> {
  try {
    return await send(url, sending);
  } catch {
    return null;
  }
}

/** Tries again while a busy machine makes the gateway shed load; nothing was done then. */
export async function patiently(url: string, sending: Sending): Promise<Answer> {
  return until(async () => {
    const answer = await send(url, sending);
    return answer.status === 503 && answer.json['code'] === 'overloaded' ? null : answer;
  });
}

export async function get(url: string, path: string): Promise<Answer> {
  return patiently(url, { method: 'GET', path });
}

export function post(url: string, path: string, json: unknown, headers: OutgoingHttpHeaders = {}): Promise<Answer> {
  return patiently(url, { method: 'POST', path, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(json) });
}

export function put(url: string, name: string, body: Uint8Array | string, headers: OutgoingHttpHeaders = {}): Promise<Answer> {
  return patiently(url, { method: 'PUT', path: `/v1/files/${name}`, headers, body });
}

export interface HeldLease {
  readonly id: string;
  readonly ref: string;
  readonly token: string;
}

/** A named lease over one or several resources. */
export async function lease(url: string, resources: readonly string[], ttlMs = 60_000): Promise<HeldLease> {
  const answer = await post(url, '/v1/leases', { ...(resources.length === 1 ? { resource: resources[0] } : { resources }), ttl_ms: ttlMs });
  if (answer.status !== 201) throw new Error(`no lease: ${answer.status} ${answer.text}`);
  const { lease_id: id, lease_ref: ref, fencing_token: token } = answer.json;
  return { id: String(id), ref: String(ref), token: String(token) };
}

/** A form with files, as a browser or curl makes it. */
export function formOf(files: Readonly<Record<string, string>>): { readonly headers: OutgoingHttpHeaders; readonly body: string } {
  const boundary = 'fencegate-form-boundary';
  const parts = Object.entries(files).map(
    ([name, bytes]) =>
      `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${name}"\r\ncontent-type: application/octet-stream\r\n\r\n${bytes}\r\n`,
  );
  return { headers: { 'content-type': `multipart/form-data; boundary=${boundary}` }, body: `${parts.join('')}--${boundary}--\r\n` };
}

function answerOf(status: number, headers: IncomingHttpHeaders, body: Buffer): Answer {
  return {
    status,
    headers,
    body,
    get text() {
      return body.toString('utf8');
    },
    get json() {
      return JSON.parse(body.toString('utf8')) as Record<string, unknown>;
    },
  };
}

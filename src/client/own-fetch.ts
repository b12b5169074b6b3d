import { request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { Readable } from 'node:stream';
import type { ReadableStream as NodeReadableStream } from 'node:stream/web';
import { CertificateDrops } from './certificate-drops.ts';
import type { Fetch } from './transport.ts';

/** Who answers and who asks, where the trust of the machine is not enough. PEM. */
export interface ClientTls {
  /** Authorities that the gateway's certificate may come from, in place of those that Node knows. */
  readonly ca?: string;
  /** The own certificate, and its chain, for a gateway that wants one. Goes together with `key`. */
  readonly cert?: string;
  /** The private key of `cert`. */
  readonly key?: string;
}

/** Responses that have no body by what they are. */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

/** `fetch` with an own authority or certificate, which the global one cannot be told without a package. */
export function fetchWith(tls: ClientTls): Fetch {
  const agent = new HttpsAgent({ keepAlive: true, ...tls });
  const drops = dropsOf(tls);
  return (input, init) => exchange(String(input), init, { agent, drops });
}

/**
 * `fetch` for a stream in the background: its connection does not keep the process alive. The global `fetch` has no way to say so, and a
 * program that has come to its end must not hang on what nobody waits for.
 */
export function unheldFetchWith(tls: ClientTls): Fetch {
  return (input, init) => exchange(String(input), init, { agent: false, unheld: true, ...tls });
}

export const unheldFetch: Fetch = unheldFetchWith({});

interface Wire extends ClientTls {
  readonly agent: HttpsAgent | false;
  readonly unheld?: boolean;
  readonly drops?: CertificateDrops | null;
}

/** `null` where there is no own certificate that could be the reason. */
export function dropsOf({ cert }: ClientTls): CertificateDrops | null {
  return cert === undefined ? null : new CertificateDrops();
}

/** One request with no body or a text, and an answer whose body streams. Nothing is redirected. */
function exchange(url: string, init: RequestInit = {}, { unheld = false, drops = null, ...wire }: Wire): Promise<Response> {
  const { method = 'GET', headers = {}, signal, body } = init;
  return new Promise((resolve, reject) => {
    const open = url.startsWith('https:') ? httpsRequest : httpRequest;
    const request = open(url, {
      method,
      headers: Object.fromEntries(new Headers(headers)),
      ...wire,
      ...(signal === null || signal === undefined ? {} : { signal }),
    });
    if (unheld) request.on('socket', (socket) => socket.unref());
    const judged = drops?.follow(request);
    request.on('error', (error) => reject(judged?.(error) ?? error));
    request.on('response', (response) => resolve(answerOf(response)));
    request.end(typeof body === 'string' ? body : undefined);
  });
}

function answerOf(response: IncomingMessage): Response {
  const headers = Object.entries(response.headers).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  const status = response.statusCode ?? 0;
  if (BODILESS.has(status)) {
    response.resume();
    return new Response(null, { status, headers });
  }
  // The two declarations of the same class know nothing of each other.
  const body = Readable.toWeb(response) as NodeReadableStream as unknown as ReadableStream;
  return new Response(body, { status, headers });
}

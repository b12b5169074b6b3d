import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { Readable } from 'node:stream';
import type { ReadableStream as NodeReadableStream } from 'node:stream/web';
import type { Fetch } from './transport.ts';

/**
 * `fetch` for a stream in the background, without a body to send: its connection does not keep the process alive. The global `fetch` has no
 * way to say so, and a program that has come to its end must not hang on what nobody waits for.
 */
export const unheldFetch: Fetch = (input, { method = 'GET', headers = {}, signal } = {}) =>
  new Promise((resolve, reject) => {
    const url = String(input);
    const open = url.startsWith('https:') ? httpsRequest : httpRequest;
    const request = open(url, {
      method,
      headers: Object.fromEntries(new Headers(headers)),
      agent: false,
      ...(signal === null || signal === undefined ? {} : { signal }),
    });
    request.on('socket', (socket) => socket.unref());
    request.on('error', reject);
    request.on('response', (response) => resolve(answerOf(response)));
    request.end();
  });

function answerOf(response: IncomingMessage): Response {
  const headers = Object.entries(response.headers).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  // The two declarations of the same class know nothing of each other.
  const body = Readable.toWeb(response) as NodeReadableStream as unknown as ReadableStream;
  return new Response(body, { status: response.statusCode ?? 0, headers });
}

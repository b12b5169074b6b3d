import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http';
import { createServer as createSecureServer, type ServerOptions as SecureServerOptions } from 'node:https';
import type { Socket } from 'node:net';
import type { Clock } from '../domain/clock.ts';
import { LIMITS } from '../domain/limits.ts';
import { beginExchange } from './exchange.ts';
import { lingerBeforeClose } from './lingering-close.ts';
import { inTurn } from './one-at-a-time.ts';

/** PEM texts; with `clientCa` the client's certificate is asked for and verified (mutual TLS). */
export interface TlsSettings {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  readonly clientCa: string | Buffer | null;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

const OPTIONS: ServerOptions = {
  maxHeaderSize: LIMITS.headerBytesMax,
  headersTimeout: LIMITS.headersTimeoutMs,
  keepAliveTimeout: LIMITS.keepAliveTimeoutMs,
  connectionsCheckingInterval: LIMITS.connectionCheckMs,
  // An upload may take hours; its body has an idle limit and a least rate of its own.
  requestTimeout: 0,
  // A missing Host is refused by us, in the form of every other refusal.
  requireHostHeader: false,
  noDelay: true,
};

/**
 * The HTTP/1.1 server under the framework. `Expect: 100-continue` runs the same handler, and `100 Continue` is held back until
 * somebody opens the body: a refused writer sends none of it (Node would answer 100 by itself).
 */
export function createHttpServer(handler: Handler, tls: TlsSettings | null, clock: Clock): Server {
  const server = tls === null ? createServer(OPTIONS) : createSecureServer({ ...OPTIONS, ...secure(tls) });
  // Node drops what is over a number of fields without a word, a condition or a token among it. Their size is bounded in any case.
  server.maxHeadersCount = 0;
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    beginExchange(request);
    inTurn(request.socket, response, () => handler(request, response));
  };
  server.on('request', serve);
  server.on('checkContinue', (request, response) => {
    const exchange = beginExchange(request);
    // Node looks for the word anywhere; beside it stands what we do not know.
    if (request.headers.expect?.toLowerCase() === '100-continue') exchange.owesContinue = true;
    else exchange.unknownExpectation = true;
    inTurn(request.socket, response, () => handler(request, response));
  });
  server.on('checkExpectation', (request, response) => {
    beginExchange(request).unknownExpectation = true;
    inTurn(request.socket, response, () => handler(request, response));
  });
  server.on(tls === null ? 'connection' : 'secureConnection', (socket: Socket) => {
    // Node remembers the address once it was asked for; after a reset the system no longer tells it, and the audit log wants it.
    void socket.remoteAddress;
    lingerBeforeClose(socket, clock);
  });
  return server;
}

function secure(tls: TlsSettings): SecureServerOptions {
  const base = { cert: tls.cert, key: tls.key, minVersion: 'TLSv1.2' as const };
  return tls.clientCa === null ? base : { ...base, ca: tls.clientCa, requestCert: true, rejectUnauthorized: true };
}

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** What the server knows about one request beside its headers. */
export interface Exchange {
  /** The client waits for `100 Continue` before it sends the body; it is given when the body is opened. */
  owesContinue: boolean;
  /** `Expect` says something else than 100-continue. */
  unknownExpectation: boolean;
  /** The framing of the body broke, or the client closed its side in the middle of it. */
  broken: boolean;
  /** What is wrong with that framing, in words; `null`: the bytes ended, or nothing is wrong. */
  malformed: string | null;
  /** Whoever waits for the body is told here. */
  whenBroken: (() => void) | undefined;
}

const exchanges = new WeakMap<IncomingMessage, Exchange>();
const current = new WeakMap<Socket, IncomingMessage>();

export function exchangeOf(request: IncomingMessage): Exchange {
  let exchange = exchanges.get(request);
  if (exchange === undefined) {
    exchange = { owesContinue: false, unknownExpectation: false, broken: false, malformed: null, whenBroken: undefined };
    exchanges.set(request, exchange);
  }
  return exchange;
}

/** The newest request of a connection, for errors that the parser reports by socket. */
export function beginExchange(request: IncomingMessage): Exchange {
  current.set(request.socket, request);
  return exchangeOf(request);
}

export function currentRequest(socket: Socket): IncomingMessage | undefined {
  return current.get(socket);
}

/** Whether the head announces a body (RFC 9112, 6.3): a length above 0, or chunks. */
export function announcesBody(request: IncomingMessage): boolean {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
  return coding !== undefined || (length !== undefined && Number(length) > 0);
}

/** Part of the announced body has not arrived (or was not read) yet. */
export function bodyIsOutstanding(request: IncomingMessage): boolean {
  return announcesBody(request) && !request.complete;
}

/** `Content-Length` as a number, or `null` for chunks or none. Node's parser refuses lengths that are not decimal. */
export function declaredBytesOf(request: IncomingMessage): number | null {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
  return coding !== undefined || length === undefined ? null : Number(length);
}

import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../domain/clock.ts';
import { type ErrorCode, type GatewayError, refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import { announcesBody, currentRequest, exchangeOf } from './exchange.ts';
import { lingeringClose } from './lingering-close.ts';
import { afterLast } from './one-at-a-time.ts';
import { problemOf } from './problem.ts';
import { ANY_METHOD } from './route-table.ts';

interface ParserError extends Error {
  readonly code?: unknown;
  /** What the parser was reading; its declared type and what arrives differ. */
  readonly rawPacket?: unknown;
}

export interface EarlyRefusal {
  readonly code: ErrorCode;
  readonly requestId: string;
  readonly remoteAddress: string;
  /** `null` when not even that could be read. */
  readonly method: string | null;
}

const METHOD = /^([A-Z]{3,16}) /;

/**
 * What the HTTP parser could not read. In the middle of a body the running request is told, and gives its own answer;
 * otherwise the same problem document as everywhere goes out on the raw socket, behind the answers to what was sent whole before it: a client must
 * not read a refusal of something else as that of its write.
 */
export function clientErrorHandler(clock: Clock, newRequestId: () => string, refused: (refusal: EarlyRefusal) => void) {
  const answered = new WeakSet<Socket>();
  return (error: ParserError, socket: Socket): void => {
    if (answered.has(socket)) return;
    if (socket.destroyed || !socket.writable || error.code === 'ECONNRESET' || error.code === 'EPIPE') {
      socket.destroy();
      return;
    }
    if (breaksRunningBody(socket, framingFault(error.code))) return;
    answered.add(socket);
    afterLast(socket, () => {
      const requestId = newRequestId();
      const { code, detail } = verdict(error);
      const method = METHOD.exec(startOf(error.rawPacket))?.[1] ?? null;
      refused({ code, requestId, remoteAddress: socket.remoteAddress ?? '', method });
      if (socket.writable) lingeringClose(socket, clock, rawAnswer(refuse(code, detail), requestId));
    });
  };
}

/**
 * This is no proxy: a tunnel that is asked for (RFC 9110, 9.3.6) is refused in words. Node would close the connection without one.
 * Like any request that cannot write, it leaves no record.
 */
export function tunnelRefusal(clock: Clock, newRequestId: () => string) {
  const allow = ANY_METHOD;
  return (_request: unknown, socket: Socket): void =>
    afterLast(socket, () => {
      const refusal = refuse('method_not_allowed', `Allowed here: ${allow.join(', ')}.`, { allow });
      lingeringClose(socket, clock, rawAnswer(refusal, newRequestId()));
    });
}

/** True when a request on this socket is still being answered: it learns that its body will not come. */
function breaksRunningBody(socket: Socket, malformed: string | null): boolean {
  const request = currentRequest(socket);
  if (request === undefined || request.complete || !announcesBody(request)) return false;
  const exchange = exchangeOf(request);
  exchange.broken = true;
  exchange.malformed = malformed;
  exchange.whenBroken?.();
  return true;
}

/** What the client wrote wrongly in the middle of a body; `null` when its bytes only ended too early. */
function framingFault(code: unknown): string | null {
  if (typeof code !== 'string' || !code.startsWith('HPE_') || code === 'HPE_INVALID_EOF_STATE') return null;
  return FRAMING_FAULTS[code] ?? 'The chunks of the body are not framed as RFC 9112, 7.1, asks.';
}

const FRAMING_FAULTS: Readonly<Record<string, string>> = {
  HPE_INVALID_CHUNK_SIZE: 'The size of a chunk is not a hexadecimal number on a line of its own.',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'The extensions of the chunks are too long.',
  HPE_HEADER_OVERFLOW: 'The trailer section after the body is too large.',
  HPE_INVALID_HEADER_TOKEN: 'The trailer section after the body is not well-formed.',
};

function verdict(error: ParserError): { code: ErrorCode; detail: string } {
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return { code: 'upload_timeout', detail: 'The header section did not arrive in time.' };
  if (error.code !== 'HPE_HEADER_OVERFLOW') return { code: 'invalid_request', detail: 'The request is not well-formed HTTP/1.1.' };
  if (requestLineIsLong(error.rawPacket)) return { code: 'uri_too_long', detail: `A URL may have ${LIMITS.uriBytesMax} bytes.` };
  return { code: 'headers_too_large', detail: `The header section may have ${LIMITS.headerBytesMax} bytes.` };
}

function requestLineIsLong(packet: unknown): boolean {
  if (!Buffer.isBuffer(packet)) return false;
  const end = packet.indexOf('\r\n');
  return METHOD.test(startOf(packet)) && (end === -1 || end > LIMITS.uriBytesMax);
}

function startOf(packet: unknown): string {
  return Buffer.isBuffer(packet) ? packet.toString('latin1', 0, 20) : '';
}

function rawAnswer(error: GatewayError, requestId: string): string {
  const problem = problemOf(error, requestId);
  const body = JSON.stringify(problem.body);
  const headers = { ...problem.headers, 'x-request-id': requestId, 'content-length': String(Buffer.byteLength(body)), connection: 'close' };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status] ?? ''}`, ...lines, '', body].join('\r\n');
}

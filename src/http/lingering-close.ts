import type { Socket } from 'node:net';
import type { Clock } from '../domain/clock.ts';
import { LIMITS } from '../domain/limits.ts';
import { bodyIsOutstanding, currentRequest } from './exchange.ts';

const POLL_MS = 20;

/**
 * A connection that is closed while the client still sends is reset by the kernel, and the client may lose the answer (case B33,
 * nodejs/node#54366). So after an early refusal the close is a lingering one: our side ends, what arrives is dropped,
 * and the socket goes when the client closes, or at a bound of bytes or time.
 */
export function lingerBeforeClose(socket: Socket, clock: Clock): void {
  const closeAtOnce = socket.destroySoon.bind(socket);
  // Node calls this, and only this, once an answer with `Connection: close` is written.
  socket.destroySoon = () => {
    const request = currentRequest(socket);
    if (request === undefined || !bodyIsOutstanding(request)) closeAtOnce();
    else lingeringClose(socket, clock);
  };
}

/** Ends our side, drops what arrives, and destroys the socket at the latest at the bounds of `LIMITS.refusedBodyDrain*`. */
export function lingeringClose(socket: Socket, clock: Clock, lastWords?: string): void {
  if (lastWords === undefined) socket.end();
  else socket.end(lastWords);
  const untilMs = clock.monotonicMs() + LIMITS.refusedBodyDrainMsMax;
  const untilBytes = socket.bytesRead + LIMITS.refusedBodyDrainBytesMax;
  const look = (): void => {
    if (socket.destroyed) return;
    if (socket.readableEnded || clock.monotonicMs() >= untilMs || socket.bytesRead >= untilBytes) socket.destroy();
    else clock.after(POLL_MS, look);
  };
  socket.resume();
  look();
}

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { LIMITS } from '../domain/limits.ts';

interface Line {
  last: ServerResponse;
  waiting: number;
}

const lines = new WeakMap<Socket, Line>();

/**
 * Requests that a client sends without waiting for the answer before (pipelining) are carried out one after the other: only safe ones
 * may run side by side (RFC 9112, 9.3.2), and a DELETE must not overtake the PUT that was sent before it.
 */
export function inTurn(socket: Socket, response: ServerResponse, start: () => void): void {
  const line = lines.get(socket);
  if (line === undefined || line.last.closed) {
    lines.set(socket, { last: response, waiting: 0 });
    start();
    return;
  }
  line.waiting += 1;
  if (line.waiting > LIMITS.pipelinedMax) {
    socket.destroy();
    return;
  }
  const previous = line.last;
  line.last = response;
  previous.once('close', () => {
    line.waiting -= 1;
    if (!socket.destroyed) start();
  });
}

/** `run` comes once every request of the connection is answered; at once when none is under way, and never when the connection ends before. */
export function afterLast(socket: Socket, run: () => void): void {
  const last = lines.get(socket)?.last;
  if (last === undefined || last.closed) run();
  else
    last.once('close', () => {
      if (!socket.destroyed) run();
    });
}

import type { RunningPeer } from '../stage.ts';

/** A peer that keeps files over HTTP. */
export interface HttpPeer extends RunningPeer {
  readonly port: number;
  /** The request target of a file with a plain name. */
  target(name: string): string;
}

/** A request head, complete with its empty line. */
export function requestHead(method: string, target: string, port: number, headers: Readonly<Record<string, string | number>>): string {
  const lines = Object.entries({ Host: `127.0.0.1:${port}`, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

const LOWEST = 10_000;
const TRIES = 100;

/** A port that nobody listens on and that the kernel gives to nobody: a server that is restarted finds it as it left it. */
export async function steadyPort(): Promise<number> {
  const [lowestGiven = '32768'] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').trim().split(/\s+/);
  for (let tries = 0; tries < TRIES; tries += 1) {
    const port = randomInt(LOWEST, Number(lowestGiven));
    if (await isFree(port)) return port;
  }
  throw new Error(`no port between ${LOWEST} and ${lowestGiven} is free`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

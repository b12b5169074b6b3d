import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { CycleClient } from './cycle-client.ts';

const TTL_MS = 30_000;
const RELEASE = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

/** The lock that the documentation of Redis describes for one server. It has no fencing token. */
export async function redisLock(port: number, name: string): Promise<CycleClient> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  const redis = new Redis(socket);
  const value = `${process.pid}-${name}`;
  return {
    run: async () => {
      await redis.call(['SET', name, value, 'NX', 'PX', String(TTL_MS)], '+OK');
      await redis.call(['EVAL', RELEASE, '1', name, value], ':1');
      return null;
    },
    close: async () => {
      socket.destroy();
    },
  };
}

/** As much of the protocol as this needs: answers of one line, one command at a time. */
class Redis {
  readonly #socket: Socket;
  #text = '';
  #settle: ((line: string | Error) => void) | null = null;

  constructor(socket: Socket) {
    this.#socket = socket;
    const fail = (error: Error): void => this.#take(error);
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      this.#text += text;
      if (!this.#text.endsWith('\r\n')) return;
      const line = this.#text.slice(0, -2);
      this.#text = '';
      this.#take(line);
    });
    socket.on('error', fail).on('close', () => fail(new Error('redis closed the connection')));
  }

  call(words: readonly string[], due: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#settle = (line) => {
        if (line === due) resolve();
        else reject(line instanceof Error ? line : new Error(`redis answered ${line.slice(0, 100)} to ${words[0]} where ${due} was due`));
      };
      this.#socket.write(`*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`);
    });
  }

  #take(line: string | Error): void {
    const settle = this.#settle;
    this.#settle = null;
    settle?.(line);
  }
}

import { beforeEach, describe, expect, it } from 'vitest';
import type { ToChild } from '../../../src/zookeeper/child-protocol.ts';
import { ProcessZkClient } from '../../../src/zookeeper/process-zk-client.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const SESSION_MS = 15_000;
/** What the documents promise. */
const SILENT_MS = 3_000;

let clock: FakeClock;
let client: ProcessZkClient;
let hung: number;
let calls: number[];

beforeEach(() => {
  clock = new FakeClock();
  hung = 0;
  calls = [];
  const order = { servers: [], chroot: '', sessionMs: SESSION_MS, resume: null, auth: null };
  client = new ProcessZkClient({ order, clock, onHung: () => (hung += 1) });
  client.attach({
    send: (message: ToChild) => {
      if (message.kind === 'call') calls.push(message.id);
      // The child itself is well.
      if (message.kind === 'permit') client.receive({ kind: 'alive' });
      return true;
    },
  });
  client.receive({ kind: 'connected', session: { id: '1', password: 'p', timeoutMs: SESSION_MS }, server: '127.0.0.1:1' });
});

const ask = (): void => void client.exists('/a').catch(() => undefined);

describe('a server that says nothing', () => {
  it('has its connection cut a fifth of the session after it was asked', () => {
    ask();
    clock.advance(SILENT_MS - 1);
    expect(hung).toBe(0);
    clock.advance(1);
    expect(hung).toBe(1);
  });

  it.each(['answer', 'failure'] as const)('is not one that answers slowly, be it with an %s', (kind) => {
    ask();
    for (let n = 0; n < 10; n += 1) {
      ask();
      clock.advance(SILENT_MS / 2);
      const id = calls.shift() ?? 0;
      client.receive(kind === 'answer' ? { kind, id, result: { stat: null } } : { kind, id, failure: 'bad_version', detail: 'changed' });
    }
    expect(hung).toBe(0);
  });

  it('is not one that nobody asks anything', () => {
    clock.advance(10 * SILENT_MS);
    expect(hung).toBe(0);
  });
});

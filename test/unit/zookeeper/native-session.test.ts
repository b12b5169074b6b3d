import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { FromChild } from '../../../src/zookeeper/child-protocol.ts';
import type { NativeClient } from '../../../src/zookeeper/native-binding.ts';
import { NativeSession } from '../../../src/zookeeper/native-session.ts';

const SESSION_MS = 180_000;
/** Two looks after it. */
const SOON_MS = 500;

/** A handle of the native client that does what it is told. */
class FakeHandle extends EventEmitter {
  readonly client_id = '0x1';
  readonly client_password = 'p';
  readonly timeout = SESSION_MS;
  state = 0;
  resumed: unknown = null;
  /** What `state` was when it was closed: closed with a connection, it ends the session. */
  closedIn: number | null = null;

  init(config: { readonly client_id?: string }): void {
    this.resumed = config.client_id ?? null;
  }

  close(): void {
    this.closedIn = this.state;
  }

  connect(): void {
    this.state = 3;
    this.emit('connect', this);
  }
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function session(): { readonly handles: FakeHandle[]; readonly said: FromChild[] } {
  const handles: FakeHandle[] = [];
  const said: FromChild[] = [];
  const create = (): NativeClient => {
    const handle = new FakeHandle();
    handles.push(handle);
    return handle as unknown as NativeClient;
  };
  const order = { servers: [], chroot: '', sessionMs: SESSION_MS, resume: null, auth: null };
  new NativeSession({ create, order, addresses: ['127.0.0.1:1'], say: (message) => said.push(message) });
  return { handles, said };
}

const kinds = (said: readonly FromChild[]): readonly string[] => said.map(({ kind }) => kind);

describe('a handle of the native client', () => {
  it.each([0, 1, 2, 999])(
    'that loses its connection without a word, and is in state %i, is replaced within a moment by one that resumes the session',
    (state) => {
      const { handles, said } = session();
      handles[0]?.connect();
      vi.advanceTimersByTime(10 * SOON_MS);
      expect([kinds(said), handles.length]).toEqual([['connected'], 1]);
      if (handles[0] !== undefined) handles[0].state = state;
      vi.advanceTimersByTime(SOON_MS);
      expect(kinds(said)).toEqual(['connected', 'disconnected']);
      expect(handles).toMatchObject([{ closedIn: state }, { resumed: '0x1' }]);
      handles[1]?.connect();
      expect(kinds(said)).toEqual(['connected', 'disconnected', 'connected']);
    },
  );

  it('that says so and tries another server goes on with that', () => {
    const { handles, said } = session();
    handles[0]?.connect();
    handles[0]?.emit('connecting', handles[0]);
    if (handles[0] !== undefined) handles[0].state = 1;
    vi.advanceTimersByTime(SOON_MS);
    handles[0]?.connect();
    expect([kinds(said), handles.length]).toEqual([['connected', 'disconnected', 'connected'], 1]);
  });
});

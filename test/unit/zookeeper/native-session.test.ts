import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { FromChild } from '../../../src/zookeeper/child-protocol.ts';
import type { NativeClient } from '../../../src/zookeeper/native-binding.ts';
import { NativeSession } from '../../../src/zookeeper/native-session.ts';

const SESSION_MS = 180_000;
/** A look at every handle. */
const SOON_MS = 250;
const SERVERS = ['127.0.0.1:1', '127.0.0.1:2', '127.0.0.1:3'];

/** A handle of the native client that does what it is told. */
class FakeHandle extends EventEmitter {
  readonly client_id = '0x1';
  readonly client_password = 'p';
  timeout = SESSION_MS;
  state = 0;
  resumed: unknown = null;
  server = '';
  /** What `state` was when it was closed: closed with a connection, it ends the session. */
  closedIn: number | null = null;

  init(config: { readonly connect: string; readonly client_id?: string }): void {
    this.resumed = config.client_id ?? null;
    this.server = config.connect;
    this.state = 1;
  }

  close(): void {
    this.closedIn = this.state;
  }

  connect(): void {
    this.state = 3;
    this.emit('connect', this);
  }

  /** It tries no more. */
  refused(): void {
    this.state = 0;
  }

  disconnect(): void {
    this.state = 1;
    this.emit('connecting', this);
  }
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function session(addresses = SERVERS): { readonly handles: FakeHandle[]; readonly said: FromChild[] } {
  const handles: FakeHandle[] = [];
  const said: FromChild[] = [];
  const create = (): NativeClient => {
    const handle = new FakeHandle();
    handles.push(handle);
    return handle as unknown as NativeClient;
  };
  const order = { servers: [], chroot: '', sessionMs: SESSION_MS, resume: null, last: null, auth: null };
  new NativeSession({ create, order, addresses, say: (message) => said.push(message) });
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

  it('that says so and comes back to its server goes on', () => {
    const { handles, said } = session();
    handles[0]?.connect();
    handles[0]?.disconnect();
    vi.advanceTimersByTime(SOON_MS);
    handles[0]?.connect();
    expect([kinds(said), handles.length]).toEqual([['connected', 'disconnected', 'connected'], 1]);
  });

  it('knows one server, and the session goes to the next one at once when that refuses, until each was asked', () => {
    const { handles } = session();
    handles[0]?.connect();
    handles[0]?.disconnect();
    handles[0]?.refused();
    vi.advanceTimersByTime(60);
    handles[1]?.refused();
    vi.advanceTimersByTime(60);
    expect(handles.map(({ server }) => server)).toEqual(SERVERS);
    handles[2]?.refused();
    vi.advanceTimersByTime(60);
    expect(handles.length).toBe(4);
    // Nobody is there: what follows is slower.
    handles[3]?.refused();
    vi.advanceTimersByTime(60);
    expect(handles.length).toBe(4);
    vi.advanceTimersByTime(SOON_MS);
    expect(handles.map(({ server }) => server)).toEqual([...SERVERS, ...SERVERS.slice(0, 2)]);
  });

  it('whose server takes the connection and says nothing is given ten seconds, and no connection is closed that there is', () => {
    const { handles } = session();
    if (handles[0] !== undefined) handles[0].state = 2;
    vi.advanceTimersByTime(9_000);
    expect(handles.length).toBe(1);
    vi.advanceTimersByTime(1_300);
    handles[1]?.connect();
    vi.advanceTimersByTime(100_000);
    expect(handles).toMatchObject([{ closedIn: 2 }, { closedIn: null, server: SERVERS[1] }]);
  });

  it('of a session that the servers gave less time than was asked for has a share of that time', () => {
    const { handles, said } = session();
    if (handles[0] !== undefined) handles[0].timeout = 4_000;
    handles[0]?.connect();
    expect(said).toMatchObject([{ kind: 'connected', server: SERVERS[0], session: { timeoutMs: 4_000 } }]);
    handles[0]?.disconnect();
    if (handles[0] !== undefined) handles[0].state = 2;
    vi.advanceTimersByTime(2_100);
    expect(handles.map(({ server }) => server)).toEqual(SERVERS.slice(0, 2));
  });

  it('of an ensemble of one server is replaced by one for the same', () => {
    const { handles } = session(['127.0.0.1:1']);
    handles[0]?.refused();
    vi.advanceTimersByTime(SOON_MS);
    expect(handles).toMatchObject([{ server: '127.0.0.1:1' }, { server: '127.0.0.1:1' }]);
  });
});

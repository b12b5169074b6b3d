import { LIMITS } from '../domain/limits.ts';
import type { ZkNodeKind, ZkSession } from '../locks/zookeeper/zk-client.ts';
import type { CallOrder, FromChild, SessionOrder, WireResult, WireStat } from './child-protocol.ts';
import { failureOf, type NativeClient, type NativeStat, RC } from './native-binding.ts';

/** More empty reads than ever happen: at its default the binding calls a living session expired (trap N15). */
const EMPTY_READS_MAX = 2_147_483_647;
const LOG_ERRORS_ONLY = 1;
const FLAGS = { persistent: 0, ephemeral: 1, ephemeral_sequential: 3 } as const;
/** Read, write, create, delete, administer: for whoever made it. */
const CREATOR_ALL = [{ perms: 31, scheme: 'auth', auth: '' }];
const WATCH_EVENTS = ['created', 'deleted', 'changed', 'child', 'notwatching'];

/** How often it is looked what has become of a handle. */
const LOOK_EVERY_MS = 250;
/** And while there are servers that have not been tried since the connection was lost. */
const FAIL_OVER_MS = 50;
/** How long one handle may try to connect: counted in looks, so that a pause of this process accuses no server. */
const attemptMs = (sessionMs: number): number =>
  Math.min(LIMITS.zookeeperAttemptMsMax, Math.max(LIMITS.zookeeperAttemptMsMin, sessionMs * LIMITS.zookeeperSilentShare));
/** `state` when it has neither a connection nor an attempt at one, and when it has a connection. */
const IDLE = 0;
const CONNECTED = 3;

/** What a node is made as. */
type Made = Pick<Extract<CallOrder, { op: 'create' }>, 'data' | 'node'>;
type Say = (message: FromChild) => void;

export interface NativeSessionOptions {
  readonly create: () => NativeClient;
  readonly order: SessionOrder;
  /** In the order in which they are tried. */
  readonly addresses: readonly string[];
  readonly say: Say;
}

/**
 * One session over the native client, of which a handle is never used for a second one (trap N10), and knows one server: it would look up each
 * address that it knows again whenever anything arrives (trap N7), which with three of them was a tenth of the time that a grant took. A handle
 * whose server refuses it loses its timer and comes back with the next ping only, a third of the session later; one that waits for a server which
 * takes connections and says nothing does so for two thirds of the session, which is all that contact lasts. And one that loses its connection may
 * tell nobody: what its `state` says counts. So it is replaced by one that resumes the session at the next server.
 */
export class NativeSession {
  readonly #make: () => NativeClient;
  readonly #order: SessionOrder;
  readonly #addresses: readonly string[];
  readonly #say: Say;
  readonly #doubtful = new Set<string>();
  readonly #watched = new Set<string>();
  #native: NativeClient;
  #session: ZkSession | null;
  #connected = false;
  #chrootMade = false;
  #over = false;
  #turn = 0;
  #server = '';
  /** Handles made since there was a connection. */
  #tried = 0;
  #look: NodeJS.Timeout | null = null;

  constructor({ create, order, addresses, say }: NativeSessionOptions) {
    this.#make = create;
    this.#order = order;
    this.#addresses = addresses;
    this.#say = say;
    this.#session = order.resume;
    this.#chrootMade = order.chroot === '' || order.resume !== null;
    this.#native = this.#begin();
    this.#lookSoon(0);
  }

  #begin(): NativeClient {
    const order = this.#order;
    const native = this.#make();
    this.#server = this.#addresses[this.#turn++ % this.#addresses.length] ?? '';
    this.#tried += 1;
    native.on('connect', () => this.#onConnect());
    native.on('connecting', () => this.#onDisconnect());
    native.on('close', (_client, code) => this.#onClose(Number(code)));
    for (const event of WATCH_EVENTS) native.on(event, (_client, path) => this.#onWatch(String(path)));
    native.init({
      connect: this.#server,
      timeout: order.sessionMs,
      debug_level: LOG_ERRORS_ONLY,
      // There is one, and nothing to shuffle.
      host_order_deterministic: true,
      data_as_buffer: true,
      response_counter_limit: EMPTY_READS_MAX,
      ...(this.#session === null ? {} : { client_id: this.#session.id, client_password: this.#session.password }),
    });
    // Kept by the native client and sent first on every connection.
    if (order.auth !== null) native.add_auth('digest', order.auth, (rc) => this.#onAuth(rc));
    return native;
  }

  /** @param lonelyMs for how long the handle has been without a connection. */
  #lookSoon(lonelyMs: number): void {
    if (this.#look !== null) clearTimeout(this.#look);
    const inMs = this.#connected || this.#tried >= this.#addresses.length ? LOOK_EVERY_MS : FAIL_OVER_MS;
    this.#look = setTimeout(() => this.#lookAfter(lonelyMs + inMs), inMs);
  }

  /** Replaces a handle that has no connection and tries no more, or has tried for too long, or lost it and did not say so. */
  #lookAfter(lonelyMs: number): void {
    if (this.#over) return;
    const { state } = this.#native;
    const silent = this.#connected && state !== CONNECTED;
    if (silent) this.#onDisconnect();
    const given = silent || (!this.#connected && (state === IDLE || lonelyMs >= attemptMs(this.#session?.timeoutMs ?? this.#order.sessionMs)));
    if (given) this.#replace();
    this.#lookSoon(this.#connected || given ? 0 : lonelyMs);
  }

  #replace(): void {
    const old = this.#native;
    // Nothing of it is heard any more. Closed without a connection, it does not end the session.
    old.removeAllListeners();
    old.close();
    this.#native = this.#begin();
    for (const path of this.#watched) this.#say({ kind: 'watch', path });
    this.#watched.clear();
  }

  call(id: number, order: CallOrder): void {
    const fail = (rc: number, error: string): void =>
      this.#say({ kind: 'failure', id, failure: failureOf(rc), detail: `${order.op}: ${error} (${rc})` });
    if (!this.#connected) {
      this.#say({ kind: 'failure', id, failure: 'unknown', detail: `${order.op}: not connected` });
      return;
    }
    const rc = this.#start(order, (done, error, result) => (done === RC.ok ? this.#say({ kind: 'answer', id, result }) : fail(done, error)));
    if (rc < 0) fail(rc, 'refused by the client');
  }

  /** Sends the end of the session; its nodes go when a server has read it. */
  close(): void {
    this.#over = true;
    this.#native.close();
    this.#say({ kind: 'closed' });
  }

  #start(order: CallOrder, done: (rc: number, error: string, result: WireResult) => void): number {
    const native = this.#native;
    const path = this.#full(order.path);
    switch (order.op) {
      case 'get':
        return native.a_get(path, order.watch, (rc, error, stat, data) => {
          if (rc === RC.ok && order.watch) this.#watched.add(order.path);
          done(rc, error, rc === RC.ok ? { stat: wireStat(stat), data: (data ?? Buffer.alloc(0)).toString('base64') } : {});
        });
      case 'exists':
        return native.a_exists(path, false, (rc, error, stat) =>
          done(rc === RC.noNode ? RC.ok : rc, error, { stat: rc === RC.ok && stat !== null ? wireStat(stat) : null }),
        );
      case 'children':
        return native.a_get_children(path, false, (rc, error, names) => done(rc, error, { names: names ?? [] }));
      case 'sync':
        return native.a_sync(path, (rc, error) => done(rc, error, {}));
      case 'set':
        return native.a_set(path, Buffer.from(order.data, 'base64'), order.version, (rc, error, stat) =>
          done(rc, error, { stat: rc === RC.ok && stat !== null ? wireStat(stat) : null }),
        );
      case 'remove':
        return native.a_delete_(path, order.version, (rc, error) => done(rc, error, {}));
      case 'create':
        return this.#create(path, order, done);
    }
  }

  /**
   * The binding makes every node open to the world; with authentication its rights are narrowed before the node is told of. A node
   * that was there before is not ours to narrow, unless it may come from a request of ours whose answer was lost.
   */
  #create(path: string, order: Made, done: (rc: number, error: string, result: WireResult) => void): number {
    const { auth } = this.#order;
    return this.#native.a_create(path, Buffer.from(order.data, 'base64'), FLAGS[order.node], (rc, error, made) => {
      const result = rc === RC.ok ? { path: this.#short(made) } : {};
      const doubtful = this.#doubtful.delete(path);
      if (auth === null) done(rc, error, result);
      else if (rc === RC.ok) this.#narrow(made, order.node, (acl, why) => done(acl, why, result));
      else if (rc === RC.nodeExists && doubtful) this.#narrow(path, order.node, () => done(rc, error, result));
      else done(rc, error, result);
      if (auth !== null) this.#noteDoubt(path, order.node, rc);
    });
  }

  /** Version 0: only while nobody has set the rights yet. */
  #narrow(path: string, node: ZkNodeKind, done: (rc: number, error: string) => void): void {
    const narrowed = (rc: number, error: string): void => {
      this.#noteDoubt(path, node, rc);
      done(rc, error);
    };
    const rc = this.#native.a_set_acl(path, 0, CREATOR_ALL, narrowed);
    if (rc < 0) narrowed(rc, 'refused by the client');
  }

  /** A node of ours may be there and open to all: whoever finds it narrows it. Sequential ones are never found by their name. */
  #noteDoubt(path: string, node: ZkNodeKind, rc: number): void {
    if (failureOf(rc) === 'unknown' && node !== 'ephemeral_sequential') this.#doubtful.add(path);
  }

  #onConnect(): void {
    if (this.#chrootMade) this.#connectedNow();
    else this.#makeChroot(this.#order.chroot.split('/').slice(1), '');
  }

  #makeChroot(rest: readonly string[], parent: string): void {
    const [name, ...further] = rest;
    if (name === undefined) {
      this.#chrootMade = true;
      this.#connectedNow();
      return;
    }
    const path = `${parent}/${name}`;
    const next = (rc: number): void => {
      // It may be there, or above what we may change; a failure of another kind shows on the next connection.
      if (rc === RC.ok || rc === RC.nodeExists || failureOf(rc) === 'no_auth') this.#makeChroot(further, path);
    };
    const rc = this.#create(path, { data: '', node: 'persistent' }, next);
    if (rc < 0) next(rc);
  }

  #connectedNow(): void {
    const { client_id: id, client_password: password, timeout } = this.#native;
    this.#session = { id, password, timeoutMs: timeout };
    this.#connected = true;
    this.#tried = 0;
    this.#say({ kind: 'connected', session: this.#session, server: this.#server });
  }

  #onDisconnect(): void {
    if (!this.#connected) return;
    this.#connected = false;
    this.#say({ kind: 'disconnected' });
    this.#lookSoon(0);
  }

  #onClose(code: number): void {
    this.#connected = false;
    if (this.#over) return;
    this.#over = true;
    this.#say({ kind: 'over', detail: `the session was ended (${code})` });
  }

  #onAuth(rc: number): void {
    // Whatever is no answer of a server is said by the connection, and it is sent again on the next one.
    if (failureOf(rc) === 'no_auth') this.#say({ kind: 'said', line: `the ensemble did not take the authentication (${rc})` });
  }

  #onWatch(path: string): void {
    const watched = this.#short(path);
    this.#watched.delete(watched);
    this.#say({ kind: 'watch', path: watched });
  }

  #full(path: string): string {
    const { chroot } = this.#order;
    return path === '/' && chroot !== '' ? chroot : `${chroot}${path}`;
  }

  #short(path: string): string {
    const short = path.slice(this.#order.chroot.length);
    return short === '' ? '/' : short;
  }
}

function wireStat({ czxid, mzxid, mtime, version, cversion, ephemeralOwner, numChildren }: NativeStat): WireStat {
  const counter = sequenceCounter(cversion, numChildren);
  return { czxid: exact(czxid), mzxid: exact(mzxid), mtimeMs: mtime.getTime(), version, cversion: counter, ephemeralOwner, numChildren };
}

/** Servers tell twice their counter, less the children that are there, in 32 bits: past 2^30 what they tell is negative. */
function sequenceCounter(cversion: number, numChildren: number): number {
  return ((cversion + numChildren) >>> 0) / 2;
}

/** A token that was rounded would be somebody else's: the process ends instead. */
function exact(zxid: number): string {
  if (!Number.isSafeInteger(zxid)) throw new Error(`the zxid ${zxid} is beyond what the client can tell exactly`);
  return zxid.toString();
}

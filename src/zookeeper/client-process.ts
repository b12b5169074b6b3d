import { Socket } from 'node:net';
import { AnswersTogether } from './answers-together.ts';
import type { CallOrder, FromChild, SessionOrder, ToChild } from './child-protocol.ts';
import { LineChannel } from './line-channel.ts';
import { loadNative, type NativeClient } from './native-binding.ts';
import { NativeSession } from './native-session.ts';
import { resolveServers } from './resolve-servers.ts';

/**
 * The process that holds the native client, which may abort it (traps N4, N5, N14). It lives on a permit: it ends when the gateway's
 * socket closes, and when the gateway has not spoken for a third of the session time, so that no session outlives whom it is for.
 */

const GATEWAY_FD = 4;
const RESOLVE_AGAIN_MS = 1_000;
/** Until a session says how long. */
const PERMIT_MS = 5_000;
/** How long an answer waits for others at most. */
const MOMENT_MS = 2;

let create: (() => NativeClient) | null = null;
let session: NativeSession | null = null;
let permitMs = PERMIT_MS;
let permit: NodeJS.Timeout | null = null;

const channel = new LineChannel<FromChild, ToChild>(new Socket({ fd: GATEWAY_FD, readable: true, writable: true }), {
  onMessage: (message) => {
    receive(message);
    // What was received may say how long it is from now on.
    renewPermit();
  },
  onClose: end,
});

const answers = new AnswersTogether({
  send: (message) => channel.send(message),
  afterMoment: (flush) => setTimeout(flush, MOMENT_MS),
  afterTurn: (end) => process.nextTick(end),
});

// A signal to the whole group (Ctrl-C, a stop of the unit) is for the gateway: it still needs the session to drain.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
// Without a supervisor there would be no next one.
process.on('disconnect', end);
renewPermit();

function receive(message: ToChild): void {
  switch (message.kind) {
    case 'hello':
      void load();
      return;
    case 'open':
      permitMs = message.sessionMs / 3;
      void open(message);
      return;
    case 'permit':
      channel.send({ kind: 'alive' });
      return;
    case 'call': {
      const { id } = message;
      if (session !== null) {
        answers.asked(id, isChange(message));
        session.call(id, message);
      } else channel.send({ kind: 'failure', id, failure: 'unknown', detail: 'no connection yet' });
      return;
    }
    case 'close':
      if (session !== null) session.close();
      else channel.send({ kind: 'closed' });
  }
}

/** What the servers have to agree on. */
function isChange({ op }: CallOrder): boolean {
  return op === 'create' || op === 'set' || op === 'remove';
}

async function load(): Promise<void> {
  try {
    create = await loadNative();
    channel.send({ kind: 'ready' });
  } catch (thrown) {
    channel.send({ kind: 'cannot', detail: String(thrown instanceof Error ? thrown.message : thrown).split('\n')[0] ?? '' });
  }
}

async function open(order: SessionOrder): Promise<void> {
  const { addresses, problems } = await resolveServers(order.servers, { random: Math.random, last: order.last });
  for (const line of problems) channel.send({ kind: 'said', line });
  if (addresses.length === 0) {
    setTimeout(() => void open(order), RESOLVE_AGAIN_MS);
    return;
  }
  if (create === null) throw new Error('the native client is not loaded');
  const say = (message: FromChild): void => {
    if (message.kind === 'connected') permitMs = message.session.timeoutMs / 3;
    answers.say(message);
  };
  session = new NativeSession({ create, order, addresses, say });
}

function renewPermit(): void {
  if (permit !== null) clearTimeout(permit);
  permit = setTimeout(end, permitMs);
}

/** At once, whatever the native client does; the session is left to run out. */
function end(): void {
  process.kill(process.pid, 'SIGKILL');
}

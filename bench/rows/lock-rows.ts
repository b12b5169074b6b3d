import { etcd } from '../peers/etcd.ts';
import { fencegate, fencegateCalled, VOLUME } from '../peers/fencegate.ts';
import { fencegateWithIntents, fencegateWithMarks, forgetSettled } from '../peers/filled-journal.ts';
import { redis } from '../peers/redis.ts';
import { apache, lighttpd, nginxDavExt } from '../peers/webdav.ts';
import { heldPutTurn, putTurn } from './http-turns.ts';
import { cycleTurn, handOverTurn, heartbeatTurn } from './lock-turns.ts';
import type { Row } from './row.ts';
import { startTurn } from './start-turns.ts';

const KIB = 1024;
const GIB = 1024 ** 3;
const CLIENTS = [1, 16, 64];
const CROWDED = [16, 64];
const FEW_WAITERS = 100;
const MANY_WAITERS = 1000;
/** Work that does not grow with the queue shows as a rate that stays, and two thirds of it is what noise leaves certain. */
const SAME_RATE = 1 / 1.5;

const count = (value: number): string => value.toLocaleString('en-US');

/** A write that takes its lock itself, beside what WebDAV clients must do for the same. */
export function lockedPutRow(nginxWorkers: number): Row {
  const memory = nginxDavExt(nginxWorkers);
  const cycle = { kind: 'webdav', bodyBytes: KIB } as const;
  return {
    id: 'put-locked',
    title: 'PUT 1 KiB under a lock of its own',
    bodyBytes: KIB,
    connections: CLIENTS,
    turns: [
      putTurn('fencegate, no token', fencegate, KIB, 'timed'),
      cycleTurn('lighttpd', lighttpd, cycle),
      cycleTurn('apache', apache, cycle),
      cycleTurn('nginx+locks', memory, cycle),
    ],
    comparisons: [
      { of: 'fencegate, no token', to: 'lighttpd', atLeast: 3, connections: CROWDED, goal: 'P3' },
      { of: 'fencegate, no token', to: 'apache', atLeast: 3, connections: [1], goal: 'P3' },
      { of: 'fencegate, no token', to: 'nginx+locks', atLeast: 0.3, connections: CROWDED, goal: 'P3' },
    ],
  };
}

export const lockRow: Row = {
  id: 'lock',
  title: 'acquire and release',
  bodyBytes: 0,
  connections: CLIENTS,
  counts: 'client',
  turns: [
    cycleTurn('fencegate', fencegate, { kind: 'fencegate-lease', volume: VOLUME }),
    cycleTurn('etcd', etcd, { kind: 'etcd-lock' }),
    cycleTurn('redis', redis, { kind: 'redis-lock' }),
  ],
  comparisons: [{ of: 'fencegate', to: 'etcd', atLeast: 3, connections: [64], goal: 'P6' }],
  latencies: [{ of: 'fencegate', p50MsMax: 2, p99MsMax: 5, connections: [1], goal: 'P6' }],
};

export const handOverRow: Row = {
  id: 'hand-over',
  title: 'hand-over after a clean release',
  bodyBytes: 0,
  connections: [MANY_WAITERS],
  counts: null,
  turns: [FEW_WAITERS, MANY_WAITERS].map((waiters) => handOverTurn(waiting(waiters), fencegate, waiters)),
  comparisons: [{ of: waiting(MANY_WAITERS), to: waiting(FEW_WAITERS), atLeast: SAME_RATE, connections: [MANY_WAITERS], goal: 'P8' }],
  latencies: [{ of: waiting(MANY_WAITERS), p50MsMax: 10, connections: [MANY_WAITERS], goal: 'P8' }],
};

function waiting(waiters: number): string {
  return `${count(waiters)} waiters`;
}

export interface Amounts {
  readonly leases: number;
  readonly marks: number;
  readonly intents: number;
}

/** What much state does to a gateway: heartbeats for many leases, writes and starts with many marks. */
export function stateRows({ leases, marks, intents }: Amounts): readonly Row[] {
  const live = fencegateCalled('fencegate+live');
  // Started again as often as the one with marks: a process that has long run is warm, and would look twice as fast.
  const fresh = fencegateCalled('fencegate+new');
  const marked = fencegateWithMarks(marks);
  const many = `${count(marks)} marks`;
  const alive = `${count(leases)} live leases`;
  const crashed = `kill -9, ${count(intents)} intents`;
  return [
    {
      id: 'put-marks',
      title: `PUT 1 KiB with ${many}`,
      bodyBytes: KIB,
      connections: [16],
      turns: [heldPutTurn('fencegate', KIB, 'timed', fresh), heldPutTurn(many, KIB, 'timed', marked)],
      comparisons: [{ of: many, to: 'fencegate', atLeast: 0.9, connections: [16], goal: 'P9' }],
    },
    {
      id: 'heartbeats',
      title: `${alive}, one heartbeat each in 2 s, 500 in a request`,
      bodyBytes: 0,
      connections: [leases],
      counts: null,
      roundsMax: 1,
      turns: [heartbeatTurn('fencegate', live, leases)],
      comparisons: [],
      memoryMax: { of: 'fencegate', atMostBytes: GIB, goal: 'P9' },
    },
    {
      id: 'start',
      title: 'start to ready',
      bodyBytes: 0,
      connections: [1],
      counts: null,
      turns: [
        startTurn('fencegate', fresh, 'SIGTERM'),
        startTurn(many, marked, 'SIGTERM'),
        startTurn(crashed, fencegateWithIntents(intents), 'SIGKILL', (running) => forgetSettled(running.journalFile)),
      ],
      comparisons: [],
      latencies: [
        { of: 'fencegate', p50MsMax: 1_000, connections: [1], goal: 'P12' },
        { of: many, p50MsMax: 10_000, connections: [1], goal: 'P9' },
        { of: crashed, p50MsMax: 5_000, connections: [1], goal: 'P12' },
      ],
      memoryMax: { of: many, atMostBytes: GIB, goal: 'P9' },
    },
    {
      id: 'start-live',
      title: `kill -9 to ready with ${alive}`,
      bodyBytes: 0,
      connections: [1],
      counts: null,
      roundsMax: 1,
      turns: [startTurn(alive, live, 'SIGKILL')],
      comparisons: [],
      latencies: [{ of: alive, p50MsMax: 10_000, connections: [1], goal: 'P9' }],
    },
  ];
}

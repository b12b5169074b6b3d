import { fencegate } from '../peers/fencegate.ts';
import { nginx, nginxWithFsync } from '../peers/nginx.ts';
import { getTurn, heldPutTurn, putTurn, refusedPutTurn } from './http-turns.ts';
import { type Amounts, handOverRow, lockedPutRow, lockRow, stateRows } from './lock-rows.ts';
import type { Comparison, Row } from './row.ts';
import { zookeeperRows } from './zookeeper-rows.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const SMALL_BODY = [1, 16, 64];
const LARGE_BODY = [1, 4];
const CROWDED = [16, 64];
const MEMORY_GROWTH_BYTES_MAX = 64 * MIB;

export interface Sizes extends Amounts {
  readonly largeMib: number;
  readonly memoryMib: number;
  readonly nginxWorkers: number;
  readonly nginxFsyncWorkers: number;
  readonly nodes: number;
}

/** The rows of a run, in their order. A new measure is a new row here. */
export function allRows(sizes: Sizes): readonly Row[] {
  const plain = nginx(sizes.nginxWorkers);
  const durable = nginxWithFsync(sizes.nginxFsyncWorkers);
  const largeBytes = sizes.largeMib * MIB;
  const memoryBytes = sizes.memoryMib * MIB;
  const smallPut = (id: string, title: string, bodyBytes: number, tokenLess: boolean): Row => ({
    id,
    title,
    bodyBytes,
    connections: SMALL_BODY,
    turns: [
      heldPutTurn('fencegate', bodyBytes, 'timed'),
      ...(tokenLess ? [putTurn('fencegate, no token', fencegate, bodyBytes, 'timed')] : []),
      putTurn('nginx+fsync', durable, bodyBytes, 'timed'),
      putTurn('nginx', plain, bodyBytes, 'timed'),
    ],
    comparisons: SMALL_PUT_GOALS,
  });
  return [
    smallPut('put-1k', 'PUT 1 KiB', KIB, true),
    smallPut('put-16k', 'PUT 16 KiB', 16 * KIB, false),
    {
      id: 'put-large',
      title: `PUT ${sizes.largeMib} MiB`,
      bodyBytes: largeBytes,
      connections: LARGE_BODY,
      turns: [heldPutTurn('fencegate', largeBytes, 1), putTurn('nginx+fsync', durable, largeBytes, 1), putTurn('nginx', plain, largeBytes, 1)],
      comparisons: [{ of: 'fencegate', to: 'nginx+fsync', atLeast: 0.9, connections: LARGE_BODY, goal: 'P4' }],
    },
    {
      id: 'get-1k',
      title: 'GET 1 KiB (wrk)',
      bodyBytes: KIB,
      connections: SMALL_BODY,
      turns: [getTurn('fencegate', fencegate, KIB, 'timed'), getTurn('nginx', plain, KIB, 'timed')],
      comparisons: [{ of: 'fencegate', to: 'nginx', atLeast: 0.5, connections: SMALL_BODY, goal: 'P5' }],
    },
    {
      id: 'get-large',
      title: `GET ${sizes.largeMib} MiB`,
      bodyBytes: largeBytes,
      connections: LARGE_BODY,
      turns: [getTurn('fencegate', fencegate, largeBytes, 1), getTurn('nginx', plain, largeBytes, 1)],
      comparisons: [{ of: 'fencegate', to: 'nginx', atLeast: 0.9, connections: LARGE_BODY, goal: 'P5' }],
    },
    {
      id: 'refuse',
      title: 'stale PUT 1 KiB: 412',
      bodyBytes: KIB,
      connections: SMALL_BODY,
      turns: [
        refusedPutTurn('refused, asks first', KIB, true),
        refusedPutTurn('refused, body sent', KIB, false),
        heldPutTurn('accepted', KIB, 'timed'),
      ],
      comparisons: [
        { of: 'refused, asks first', to: 'accepted', atLeast: 2, connections: SMALL_BODY, goal: 'P10' },
        { of: 'refused, body sent', to: 'accepted', atLeast: 2, connections: SMALL_BODY, goal: 'P10' },
      ],
    },
    {
      id: 'memory',
      title: `PUT ${sizes.memoryMib} MiB: resident memory`,
      bodyBytes: memoryBytes,
      connections: [1],
      roundsMax: 1,
      turns: [heldPutTurn('fencegate', memoryBytes, 1), putTurn('nginx+fsync', durable, memoryBytes, 1)],
      comparisons: [],
      memoryGrowth: { of: 'fencegate', atMostBytes: MEMORY_GROWTH_BYTES_MAX, goal: 'P4' },
    },
    lockedPutRow(sizes.nginxWorkers),
    lockRow,
    handOverRow,
    ...stateRows(sizes),
    ...zookeeperRows(sizes.nodes),
  ];
}

const SMALL_PUT_GOALS: readonly Comparison[] = [
  { of: 'fencegate', to: 'nginx+fsync', atLeast: 1, connections: [1], goal: 'P2' },
  { of: 'fencegate', to: 'nginx+fsync', atLeast: 1.5, connections: CROWDED, goal: 'P1' },
  { of: 'fencegate', to: 'nginx', atLeast: 0.5, connections: CROWDED, goal: 'P1' },
];

/** For the command line's help; sizes name no row. */
export const ROW_IDS: readonly string[] = allRows({
  largeMib: 1,
  memoryMib: 1,
  nginxWorkers: 1,
  nginxFsyncWorkers: 1,
  leases: 1,
  marks: 1,
  intents: 1,
  nodes: 1,
}).map(({ id }) => id);

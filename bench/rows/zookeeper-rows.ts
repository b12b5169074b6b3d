import { VOLUME } from '../peers/fencegate.ts';
import { type FencegateOverZookeeper, fencegateOver } from '../peers/fencegate-zookeeper.ts';
import { kazoo } from '../peers/kazoo.ts';
import { zookeeper } from '../peers/zookeeper.ts';
import type { Peer } from '../stage.ts';
import { cycleTurn, kazooTurn } from './lock-turns.ts';
import type { Comparison, Row, Turn } from './row.ts';

const CLIENTS = [1, 16, 64];
const P50_MS_MAX = 5;
/** Two thirds is what noise leaves certain of a rate that stays. */
const SAME_RATE = 1 / 1.5;
const NEW = ', new names';

/** Leases that an ensemble decides, beside the lock of a client library of the same ensemble. */
export function zookeeperRows(nodes: number): readonly Row[] {
  const one = zookeeper('zookeeper', 1);
  const over = fencegateOver('fencegate+zookeeper', one);
  const three = zookeeper('zookeeper-3', 3);
  return [
    lockRow('zookeeper', 'acquire and release, ZooKeeper', over, kazooTurns('kazoo', kazoo('kazoo', one))),
    lockRow(
      'zookeeper-3',
      'acquire and release, three ZooKeeper servers',
      fencegateOver('fencegate+zookeeper-3', three),
      kazooTurns('kazoo', kazoo('kazoo-3', three)),
    ),
    nodesRow(nodes, over),
  ];
}

function lockRow(id: string, title: string, gateway: Peer<FencegateOverZookeeper>, kazooTurns: readonly Turn[]): Row {
  return {
    id,
    title,
    bodyBytes: 0,
    connections: CLIENTS,
    counts: 'client',
    timed: 'acquire',
    turns: [leaseTurn('fencegate', gateway, 'own'), leaseTurn(`fencegate${NEW}`, gateway, 'new'), ...kazooTurns],
    comparisons: ['', NEW].map(
      (names): Comparison => ({ of: `fencegate${names}`, to: `kazoo${names}`, atLeast: 1, connections: CLIENTS, goal: 'P7' }),
    ),
    latencies: ['', NEW].map((names) => ({ of: `fencegate${names}`, p50MsMax: P50_MS_MAX, connections: [1], goal: 'P7' })),
  };
}

function leaseTurn(contestant: string, peer: Peer<FencegateOverZookeeper>, names: 'own' | 'new'): Turn {
  return cycleTurn(contestant, peer, { kind: 'fencegate-lease', volume: VOLUME, names, timed: 'acquire' });
}

function kazooTurns(contestant: string, peer: Parameters<typeof kazooTurn>[1]): readonly Turn[] {
  return [kazooTurn(contestant, peer, 'own'), kazooTurn(`${contestant}${NEW}`, peer, 'new')];
}

/** Names that were locked once stay in the ensemble's memory. */
function nodesRow(nodes: number, few: Peer<FencegateOverZookeeper>): Row {
  const many = `${nodes.toLocaleString('en-US')} nodes`;
  return {
    id: 'zookeeper-nodes',
    title: `acquire and release with ${many}`,
    bodyBytes: 0,
    connections: [16],
    counts: 'client',
    timed: 'acquire',
    turns: [withHeap(leaseTurn('fencegate', few, 'own'), few), withHeap(leaseTurn(many, filled(nodes), 'own'), filled(nodes))],
    comparisons: [{ of: many, to: 'fencegate', atLeast: SAME_RATE, connections: [16], goal: 'P7' }],
  };
}

function filled(nodes: number): Peer<FencegateOverZookeeper> {
  return fencegateOver('fencegate+nodes', zookeeper('zookeeper+nodes', 1), nodes);
}

/** What the ensemble holds is asked after the turn. */
function withHeap(turn: Turn, peer: Peer<FencegateOverZookeeper>): Turn {
  return {
    ...turn,
    run: async (stage, clients, length) => {
      const sample = await turn.run(stage, clients, length);
      return { ...sample, heapBytes: await (await stage.running(peer)).liveHeapBytes() };
    },
  };
}

import { availableParallelism } from 'node:os';
import type { Cycle } from '../load/cycle-plan.ts';
import { runKazoo } from '../load/run-kazoo.ts';
import type { ServerOnPort } from '../peers/etcd.ts';
import { type RunningFencegate, VOLUME } from '../peers/fencegate.ts';
import { KAZOO, type RunningKazoo } from '../peers/kazoo.ts';
import type { Peer } from '../stage.ts';
import { measured } from './measured.ts';
import type { Turn } from './row.ts';

/** Of the rows about heartbeats: every session is renewed so often, so many with one request. */
const HEARTBEAT_EVERY_MS = 2_000;
const HEARTBEAT_BATCH = 500;
/** A heartbeat that is missed shows only when several were due. */
const HEARTBEATS_MIN = 3;

/** Each client takes and gives back a lock of its own, or does what else one cycle is, again and again. */
export function cycleTurn(contestant: string, peer: Peer<ServerOnPort>, cycle: Cycle): Turn {
  return {
    contestant,
    peer,
    run: async (stage, clients, { warmUpMs, seconds }) => {
      const running = await stage.running(peer);
      return measured(stage, running, () =>
        stage.driver.run({ plan: 'cycles', port: running.port, clients, cycle, amount: { warmUpMs, measureMs: seconds * 1000 } }),
      );
    },
  };
}

/** The same with kazoo's `Lock`, which drives itself. */
export function kazooTurn(contestant: string, peer: Peer<RunningKazoo>, names: 'own' | 'new'): Turn {
  return {
    contestant,
    peer,
    needs: [KAZOO],
    run: async (stage, clients, { warmUpMs, seconds }) => {
      const running = await stage.running(peer);
      const plan = { hosts: running.connect, clients, processes: availableParallelism(), names, warmUpMs, measureMs: seconds * 1000 };
      return measured(stage, running, () => runKazoo(plan));
    },
  };
}

/** `waiters` stand in line for one name, whatever the number of connections says. */
export function handOverTurn(contestant: string, peer: Peer<RunningFencegate>, waiters: number): Turn {
  return {
    contestant,
    peer,
    run: async (stage, _connections, { warmUpMs, seconds }) => {
      const running = await stage.running(peer);
      const resource = `${VOLUME}/one-for-${waiters}`;
      return measured(stage, running, () =>
        stage.driver.run({ plan: 'hand-over', port: running.port, resource, waiters, amount: { warmUpMs, measureMs: seconds * 1000 } }),
      );
    },
  };
}

export function heartbeatTurn(contestant: string, peer: Peer<RunningFencegate>, leases: number): Turn {
  return {
    contestant,
    peer,
    run: async (stage, _connections, { seconds }) => {
      const running = await stage.running(peer);
      const batch = Math.min(HEARTBEAT_BATCH, leases);
      const measureMs = Math.max(seconds * 1000, HEARTBEATS_MIN * HEARTBEAT_EVERY_MS);
      const plan = { plan: 'heartbeats', port: running.port, volume: VOLUME, leases, everyMs: HEARTBEAT_EVERY_MS, batch } as const;
      // Their making is no part of what is measured.
      await stage.driver.run({ ...plan, measureMs: 0 });
      return measured(stage, running, () => stage.driver.run({ ...plan, measureMs }));
    },
  };
}

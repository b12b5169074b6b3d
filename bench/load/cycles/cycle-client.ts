import type { Cycle } from '../cycle-plan.ts';
import { etcdLock } from './etcd-lock.ts';
import { fencegateLease } from './fencegate-lease.ts';
import { redisLock } from './redis-lock.ts';
import { webdavCycle } from './webdav-cycle.ts';

export interface CycleClient {
  /**
   * @returns when that was over whose time is told, ms; `null`: the whole cycle is.
   * @throws Error when an answer was not the one that was due, or the lock was not got.
   */
  run(): Promise<number | null>;
  close(): Promise<void>;
}

/** A client on a connection of its own; `index` gives it a name that nobody else wants. */
export function cycleClient(port: number, cycle: Cycle, index: number): Promise<CycleClient> {
  switch (cycle.kind) {
    case 'fencegate-lease':
      return Promise.resolve(fencegateLease(port, `${cycle.volume}/lock-${index}`, cycle));
    case 'etcd-lock':
      return Promise.resolve(etcdLock(port, `lock-${index}`));
    case 'redis-lock':
      return redisLock(port, `lock-${index}`);
    case 'webdav':
      return Promise.resolve(webdavCycle(port, `/cycle-${index}`, cycle.bodyBytes));
  }
}

import type { RunningFencegate } from '../peers/fencegate.ts';
import type { Peer } from '../stage.ts';
import type { Turn } from './row.ts';

const MS_PER_SECOND = 1000;

/**
 * Ends the gateway and starts it again; the one request that is counted is the start, from the creation of the process to the first yes of
 * `/readyz`, asked every 20 ms.
 */
export function startTurn(
  contestant: string,
  peer: Peer<RunningFencegate>,
  signal: 'SIGTERM' | 'SIGKILL',
  meanwhile: (running: RunningFencegate) => void = () => undefined,
): Turn {
  return {
    contestant,
    peer,
    run: async (stage) => {
      const running = await stage.running(peer);
      const memoryBefore = running.processes.memory();
      const startMs = await running.restart(signal, () => meanwhile(running));
      const { processes } = running;
      return {
        requests: 1,
        requestsPerSecond: MS_PER_SECOND / startMs,
        p50Ms: startMs,
        p99Ms: startMs,
        cpuMsPerRequest: processes.cpuSeconds() * MS_PER_SECOND,
        flushesPerRequest: null,
        bodyBytesSent: 0,
        memoryBefore,
        memoryAfter: processes.memory(),
        driverCpuShare: 0,
      };
    },
  };
}

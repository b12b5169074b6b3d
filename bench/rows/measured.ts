import type { LoadResult } from '../load/plan.ts';
import { diskFlushes } from '../measure/disk-flushes.ts';
import { settleDisk } from '../place/file-system.ts';
import type { RunningPeer, Stage } from '../stage.ts';
import type { Sample } from './row.ts';

/** Runs a load between two readings of the kernel's accounts, on a disk that has nothing left to write. */
export async function measured(stage: Stage, peer: RunningPeer, load: () => Promise<LoadResult>): Promise<Sample> {
  const { processes, ensemble } = peer;
  await settleDisk(stage.place);
  processes.forgetPeaks();
  const memoryBefore = processes.memory();
  const cpuBefore = processes.cpuSeconds();
  const ensembleBefore = ensemble?.cpuSeconds() ?? 0;
  const flushesBefore = diskFlushes(stage.place.deviceStat);
  const result = await load();
  const flushesAfter = diskFlushes(stage.place.deviceStat);
  const cpuSeconds = processes.cpuSeconds() - cpuBefore;
  const ensembleSeconds = ensemble === undefined ? null : ensemble.cpuSeconds() - ensembleBefore;
  if (result.requests === 0) throw new Error('no request was answered in the measured time');
  return {
    requests: result.requests,
    requestsPerSecond: result.requests / result.seconds,
    p50Ms: result.p50Ms,
    p99Ms: result.p99Ms,
    cpuMsPerRequest: (cpuSeconds * 1000) / result.requestsAll,
    ...(ensembleSeconds === null ? {} : { ensembleCpuMsPerRequest: (ensembleSeconds * 1000) / result.requestsAll }),
    flushesPerRequest: flushesBefore === null || flushesAfter === null ? null : (flushesAfter - flushesBefore) / result.requestsAll,
    bodyBytesSent: result.bodyBytesSent,
    memoryBefore,
    memoryAfter: processes.memory(),
    driverCpuShare: result.driverCpuShare,
  };
}

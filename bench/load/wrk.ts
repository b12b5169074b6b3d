import { readFileSync } from 'node:fs';
import { command } from '../place/command.ts';
import type { LoadResult } from './plan.ts';

const TICKS_PER_SECOND = 100;

/**
 * Reads with wrk: on a small file from the cache nginx answers faster than a load driver in Node can ask, and the driver
 * would be what is measured. It has whole seconds only, and no warm-up of its own.
 * @throws Error when an answer was an error.
 */
export async function runWrk(url: string, connections: number, seconds: number): Promise<LoadResult> {
  const before = childrenCpuSeconds();
  const text = await command('wrk', ['-t', '1', '-c', String(connections), '-d', `${Math.max(1, Math.round(seconds))}s`, '--latency', url]);
  const driverCpuSeconds = childrenCpuSeconds() - before;
  const problem = /^\s*(Non-2xx.*|Socket errors.*)$/m.exec(text)?.[1];
  if (problem !== undefined) throw new Error(`wrk: ${problem}`);
  const total = /(\d+) requests in ([\d.]+)(us|ms|s|m),/.exec(text);
  const requests = Number(total?.[1]);
  const measuredSeconds = durationMs(total?.[2], total?.[3]) / 1000;
  if (!(requests > 0) || !(measuredSeconds > 0)) throw new Error(`wrk said something else than figures: ${text.slice(0, 200)}`);
  return {
    requests,
    seconds: measuredSeconds,
    p50Ms: percentile(text, 50),
    p99Ms: percentile(text, 99),
    requestsAll: requests,
    bodyBytesSent: 0,
    driverCpuShare: driverCpuSeconds / measuredSeconds,
  };
}

function percentile(text: string, percent: number): number {
  const found = new RegExp(`^\\s*${percent}%\\s+([\\d.]+)(us|ms|s|m)\\s*$`, 'm').exec(text);
  return durationMs(found?.[1], found?.[2]);
}

function durationMs(value: string | undefined, unit: string | undefined): number {
  const factors: Readonly<Record<string, number>> = { us: 0.001, ms: 1, s: 1000, m: 60_000 };
  return Number(value) * (factors[unit ?? ''] ?? Number.NaN);
}

/** CPU time of this process's children that have ended and were waited for. */
function childrenCpuSeconds(): number {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND;
}

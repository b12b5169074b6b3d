import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { threadsNeeded } from '../../../src/cli/thread-pool.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { LIMITS } from '../../../src/domain/limits.ts';

const volumes = (list: string) => loadConfig({ FENCEGATE_VOLUMES: list }, '/srv').volumes;

describe('the thread pool', () => {
  it('has a thread for every operation that a volume may have in flight, and some to spare', () => {
    expect(threadsNeeded(volumes('a=/a,b=/b,locks='))).toBe(2 * LIMITS.volumeInFlightDefault + 8);
  });

  it('of bin/fencegate.cjs starts from the same numbers as the gateway', () => {
    const bin = readFileSync(new URL('../../../bin/fencegate.cjs', import.meta.url), 'utf8');
    expect(bin).toContain(`POOL_SIZE_MIN = ${LIMITS.threadPoolSize};`);
    expect(bin).toContain(`IN_FLIGHT_PER_VOLUME = ${LIMITS.volumeInFlightDefault};`);
  });
});

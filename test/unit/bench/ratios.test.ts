import { describe, expect, it } from 'vitest';
import { Latencies } from '../../../bench/load/latencies.ts';
import { spread } from '../../../bench/measure/statistics.ts';
import { ratiosOf } from '../../../bench/report/ratios.ts';
import type { Block, Outcome } from '../../../bench/rounds.ts';
import type { Row, Sample } from '../../../bench/rows/row.ts';

const ROW: Row = {
  id: 'a-row',
  title: 'a row',
  connections: [1, 16],
  bodyBytes: 1024,
  turns: [],
  comparisons: [
    { of: 'ours', to: 'theirs', atLeast: 1.5, connections: [16], goal: 'P1' },
    { of: 'ours', to: 'theirs', atLeast: 1, connections: [1], goal: 'P2' },
  ],
};

function rate(requestsPerSecond: number): Outcome {
  const memory = { residentBytes: 0, peakBytes: 0 };
  const sample: Sample = {
    requests: 1,
    requestsPerSecond,
    p50Ms: 1,
    p99Ms: 1,
    cpuMsPerRequest: 1,
    flushesPerRequest: null,
    bodyBytesSent: 0,
    memoryBefore: memory,
    memoryAfter: memory,
    driverCpuShare: 0,
  };
  return { sample };
}

function block(ours: readonly Outcome[], theirs: readonly Outcome[]): Block {
  return {
    row: ROW,
    connections: 16,
    outcomes: new Map([
      ['ours', ours],
      ['theirs', theirs],
    ]),
  };
}

describe('ratios', () => {
  it('are the median of quotients of the same round, not the quotient of medians', () => {
    const [ratio, ...others] = ratiosOf(block([rate(100), rate(20), rate(30)], [rate(50), rate(20), rate(10)]));
    expect(ratio?.spread).toEqual({ median: 2, min: 1, max: 3 });
    expect(ratio?.met).toBe(true);
    expect(others).toEqual([]);
  });

  it('leave out a round in which one of the two gave no figures', () => {
    const [ratio] = ratiosOf(block([{ problem: 'answered 503' }, rate(20)], [rate(50), rate(20)]));
    expect(ratio?.spread).toEqual({ median: 1, min: 1, max: 1 });
    expect(ratio?.met).toBe(false);
  });

  it('are not met when no round gave figures', () => {
    expect(ratiosOf(block([{ problem: 'answered 503' }], [rate(1)]))[0]).toMatchObject({ spread: null, met: null });
  });
});

describe('statistics', () => {
  it('take the mean of the two in the middle of an even number', () => {
    expect(spread([4, 1, 3, 2])).toEqual({ median: 2.5, min: 1, max: 4 });
    expect(() => spread([])).toThrow(RangeError);
  });

  it('take percentiles by nearest rank', () => {
    const latencies = new Latencies();
    for (let ms = 100; ms >= 1; ms--) latencies.add(ms);
    expect(latencies.percentiles([0.5, 0.99])).toEqual([50, 99]);
  });
});

import { describe, expect, it } from 'vitest';
import { blockText } from '../../../bench/report/tables.ts';
import { type Block, blockTitle } from '../../../bench/rounds.ts';
import type { Row, Sample } from '../../../bench/rows/row.ts';
import { ROW_IDS } from '../../../bench/rows/rows.ts';

const MIB = 1024 * 1024;
const memory = { residentBytes: MIB, peakBytes: 100 * MIB };
const SAMPLE: Sample = {
  requests: 1,
  requestsPerSecond: 10,
  p50Ms: 3,
  p99Ms: 4,
  cpuMsPerRequest: 1,
  flushesPerRequest: null,
  bodyBytesSent: 0,
  memoryBefore: memory,
  memoryAfter: memory,
  driverCpuShare: 0,
};
const ROW: Row = {
  id: 'a-row',
  title: 'acquire',
  connections: [1],
  bodyBytes: 0,
  turns: [],
  comparisons: [],
  counts: 'client',
  latencies: [{ of: 'ours', p50MsMax: 2, p99MsMax: 5, connections: [1], goal: 'P6' }],
  memoryMax: { of: 'ours', atMostBytes: 200 * MIB, goal: 'P9' },
};
const block: Block = { row: ROW, connections: 1, outcomes: new Map([['ours', [{ sample: SAMPLE }]]]) };

describe('a table', () => {
  it('says below which latencies and what memory a goal allows, and whether it was met', () => {
    const text = blockText(block);
    expect(text).toContain('ours: p50 3 ms of 2: missed, p99 4 ms of 5: met (P6)');
    expect(text).toContain('ours: 100 MiB resident; P9 allows 200: met');
  });

  it('tells what the coordinator’s servers cost only where there are any, and of what its times are', () => {
    expect(blockText(block)).not.toMatch(/ensemble|heap/);
    const sample = { ...SAMPLE, ensembleCpuMsPerRequest: 0.25, heapBytes: 42 * MIB };
    const outcomes = new Map([...block.outcomes, ['beside', [{ sample }]]]);
    const [title, head, ours, beside] = blockText({ row: { ...ROW, timed: 'the taking' }, connections: 1, outcomes }).split('\n');
    expect(title).toBe('acquire, 1 client (p50, p99: the taking)');
    expect(head).toMatch(/driver CPU {2}ensemble CPU {2}heap MiB$/);
    expect([ours, beside]).toEqual([expect.stringMatching(/ 0 %$/), expect.stringMatching(/ 0 % +0\.250 +42$/)]);
  });

  it('counts in its title what the row counts', () => {
    expect(blockTitle(ROW, 16)).toBe('acquire, 16 clients');
    expect(blockTitle({ ...ROW, counts: null }, 16)).toBe('acquire');
  });
});

describe('the rows', () => {
  it('have names of their own', () => {
    expect(new Set(ROW_IDS).size).toBe(ROW_IDS.length);
  });
});

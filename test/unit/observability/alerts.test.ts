import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { LIMITS } from '../../../src/domain/limits.ts';
import { gatewayMetrics } from '../../../src/observability/gateway-metrics.ts';

/** The alert rules that are shipped, against the metrics that exist. */

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string };
}

const file = fileURLToPath(new URL('../../../docker/prometheus/alerts.yml', import.meta.url));
const rules = (parse(readFileSync(file, 'utf8')) as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules);
const expressionOf = (alert: string): string => rules.find((rule) => rule.alert === alert)?.expr ?? '';

const SPACE = { totalBytes: 1_000, freeBytes: 500, totalInodes: null, freeInodes: null };

const metrics = gatewayMetrics({
  coordinator: () => ({ kind: 'zookeeper', state: 'suspended', proofAgeMs: 6_000 }),
  volumes: () => [{ name: 'v', fenceLevel: 'incarnation', state: 'open', reason: null, space: SPACE }],
  lanes: () =>
    new Map([
      ['v', { inFlight: 0, queued: 0, breaker: 'closed' }],
      ['idle', { inFlight: 0, queued: 0, breaker: 'closed' }],
    ]),
  locks: () => new Map([['v', { held: 2, waiting: 120, longestQueue: 101, longestHeldMs: 300_500 }]]),
  journal: () => ({ queueLength: 0, inFlight: 0, walFramesLeft: 0 }),
});

describe('the alert rules', () => {
  it('speak only of metrics that exist', async () => {
    const text = await metrics.text();
    const names = rules.flatMap(({ expr }) => expr.match(/fencegate_[a-z_]+/g) ?? []);
    expect(names.length).toBeGreaterThan(rules.length - 2);
    const known = [...text.matchAll(/^# TYPE (\S+)/gm)].map((match) => match[1] ?? '');
    expect(names.filter((name) => !known.includes(name.replace(/_count$/, '')))).toEqual([]);
  });

  it('have a severity and a summary each, and names that begin alike', () => {
    expect(
      rules.filter(
        ({ alert, labels, annotations }) =>
          !/^Fencegate[A-Z]/.test(alert) || !/^(warning|critical)$/.test(labels.severity) || annotations.summary === '',
      ),
    ).toEqual([]);
  });

  it('have the bounds of the doctor: held over five minutes, a queue over 100', () => {
    expect(expressionOf('FencegateLockHeldLong')).toBe(`fencegate_lock_longest_held_seconds > ${LIMITS.heldLongMs / 1_000}`);
    expect(expressionOf('FencegateLockQueueLong')).toBe(`fencegate_lock_queue_length > ${LIMITS.queueLong}`);
    expect(expressionOf('FencegateRepeatedFailures')).toContain('fencegate_lock_acquisition_seconds_count');
  });
});

describe('the gauges of space', () => {
  it('F29: bytes and inodes are per volume, and there is none where nothing is known', async () => {
    const lines = (await metrics.text()).split('\n').filter((line) => /^fencegate_volume_(size|free|inodes)/.test(line));
    expect(lines).toEqual(['fencegate_volume_size_bytes{volume="v"} 1000', 'fencegate_volume_free_bytes{volume="v"} 500']);
  });
});

describe('the gauges of locks', () => {
  it('are per volume, and 0 for a volume without locks, so that an alert ends', async () => {
    const text = await metrics.text();
    for (const line of [
      'fencegate_lock_queue_length{volume="v"} 101',
      'fencegate_lock_waiters{volume="v"} 120',
      'fencegate_locks_held{volume="v"} 2',
      'fencegate_lock_longest_held_seconds{volume="v"} 300.5',
      'fencegate_lock_queue_length{volume="idle"} 0',
      'fencegate_lock_longest_held_seconds{volume="idle"} 0',
    ])
      expect(text).toContain(line);
  });
});

import { describe, expect, it } from 'vitest';
import { Metrics } from '../../../src/observability/metrics.ts';

describe('the metrics', () => {
  it('are all named fencegate_', async () => {
    const text = await new Metrics().text();
    const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map((match) => match[1]);
    expect(names.length).toBeGreaterThan(10);
    expect(names.filter((name) => !name?.startsWith('fencegate_'))).toEqual([]);
    expect(text).toContain('fencegate_nodejs_eventloop_lag_p99_seconds');
  });

  it('count requests, refusals, acquisitions, holds and commits', async () => {
    const metrics = new Metrics();
    metrics.request('PUT', '/v1/files/:volume/*', 201, 0.004);
    metrics.refused('stale_token');
    metrics.refused('stale_token');
    metrics.acquired('exclusive', 'held', 0.002);
    metrics.held('expired', 31);
    metrics.journalCommit(0.0004);
    const text = await metrics.text();
    expect(text).toContain('fencegate_request_seconds_count{method="PUT",route="/v1/files/:volume/*",status="201"} 1');
    expect(text).toContain('fencegate_refusals_total{code="stale_token"} 2');
    expect(text).toContain('fencegate_lock_acquisition_seconds_bucket{le="0.0025",mode="exclusive",result="held"} 1');
    expect(text).toContain('fencegate_lock_hold_seconds_sum{reason="expired"} 31');
    expect(text).toContain('fencegate_journal_commit_seconds_count 1');
  });

  it('read a gauge when somebody scrapes, and forget labels that are gone', async () => {
    const metrics = new Metrics();
    let volumes = ['a', 'b'];
    metrics.gauge('fencegate_volume_in_flight', 'Operations in flight', ['volume'], () =>
      volumes.map((volume) => ({ labels: { volume }, value: 2 })),
    );
    expect(await metrics.text()).toContain('fencegate_volume_in_flight{volume="b"} 2');
    volumes = ['a'];
    const text = await metrics.text();
    expect(text).toContain('fencegate_volume_in_flight{volume="a"} 2');
    expect(text).not.toContain('volume="b"');
  });

  it('count how often the coordinator was out of reach, from 0 on, so that the first time is an increase', async () => {
    const metrics = new Metrics();
    expect(await metrics.text()).toContain('fencegate_coordinator_interruptions_total{state="lost"} 0');
    metrics.interrupted('suspended');
    metrics.interrupted('suspended');
    metrics.interrupted('lost');
    const text = await metrics.text();
    expect(text).toContain('fencegate_coordinator_interruptions_total{state="suspended"} 2');
    expect(text).toContain('fencegate_coordinator_interruptions_total{state="lost"} 1');
  });

  it('of two gateways in one process are apart', async () => {
    const one = new Metrics();
    one.refused('internal');
    expect(await new Metrics().text()).not.toContain('code="internal"');
  });
});

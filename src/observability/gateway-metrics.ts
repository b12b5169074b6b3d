import { Metrics, type Reading } from './metrics.ts';

export interface GaugeSources {
  lanes(): ReadonlyMap<string, { readonly inFlight: number; readonly queued: number; readonly breaker: string }>;
  journal(): { readonly queueLength: number; readonly inFlight: number; readonly walFramesLeft: number };
}

/** The metrics of a gateway with every gauge that is read from its parts at a scrape. */
export function gatewayMetrics(sources: GaugeSources): Metrics {
  const metrics = new Metrics();
  const perVolume = (value: (lane: { inFlight: number; queued: number; breaker: string }) => number) => (): Reading[] =>
    [...sources.lanes()].map(([volume, lane]) => ({ labels: { volume }, value: value(lane) }));
  const plain = (value: () => number) => (): Reading[] => [{ labels: {}, value: value() }];
  metrics.gauge(
    'fencegate_volume_in_flight',
    'Calls of a volume that run now',
    ['volume'],
    perVolume((lane) => lane.inFlight),
  );
  metrics.gauge(
    'fencegate_volume_queued',
    'Calls of a volume that wait for a place',
    ['volume'],
    perVolume((lane) => lane.queued),
  );
  metrics.gauge(
    'fencegate_volume_shut',
    '1 while a volume does not answer and its calls are refused',
    ['volume'],
    perVolume((lane) => (lane.breaker === 'closed' ? 0 : 1)),
  );
  metrics.gauge(
    'fencegate_journal_queue_length',
    'Units that wait for a disk commit',
    [],
    plain(() => sources.journal().queueLength),
  );
  metrics.gauge(
    'fencegate_operations_in_flight',
    'Writes between their intent and their end',
    [],
    plain(() => sources.journal().inFlight),
  );
  metrics.gauge(
    'fencegate_journal_wal_frames_left',
    'Frames that the last checkpoint could not empty; -1: it could not run',
    [],
    plain(() => sources.journal().walFramesLeft),
  );
  return metrics;
}

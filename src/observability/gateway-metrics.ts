import type { VolumeReadiness } from '../domain/health.ts';
import type { VolumeSpace } from '../domain/volume-space.ts';
import { Metrics, type Reading } from './metrics.ts';

interface LockFigures {
  readonly held: number;
  readonly waiting: number;
  readonly longestQueue: number;
  readonly longestHeldMs: number;
}

export interface GaugeSources {
  coordinator(): { readonly kind: string; readonly state: string; readonly proofAgeMs: number | null };
  lanes(): ReadonlyMap<string, { readonly inFlight: number; readonly queued: number; readonly breaker: string }>;
  volumes(): readonly VolumeReadiness[];
  /** Of the volumes that have locks now. */
  locks(): ReadonlyMap<string, LockFigures>;
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
  metrics.gauge('fencegate_volume_fence_level', 'Always 1: the labels say what is in force', ['volume', 'level', 'state'], () =>
    sources.volumes().map(({ name, fenceLevel, state }) => ({ labels: { volume: name, level: fenceLevel, state }, value: 1 })),
  );
  spaceGauges(metrics, sources);
  lockGauges(metrics, sources);
  coordinatorGauges(metrics, sources);
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

/** A volume that does not answer has no figure: a gap says more than an old value. */
function spaceGauges(metrics: Metrics, sources: GaugeSources): void {
  const perVolume = (value: (space: VolumeSpace) => number | null) => (): Reading[] =>
    sources.volumes().flatMap(({ name, space }) => {
      const figure = space === null ? null : value(space);
      return figure === null ? [] : [{ labels: { volume: name }, value: figure }];
    });
  metrics.gauge(
    'fencegate_volume_size_bytes',
    'Size of the file system of a volume',
    ['volume'],
    perVolume(({ totalBytes }) => totalBytes),
  );
  metrics.gauge(
    'fencegate_volume_free_bytes',
    'What is left of it for anybody but root',
    ['volume'],
    perVolume(({ freeBytes }) => freeBytes),
  );
  metrics.gauge(
    'fencegate_volume_inodes',
    'Inodes of the file system of a volume, where they are counted',
    ['volume'],
    perVolume(({ totalInodes }) => totalInodes),
  );
  metrics.gauge(
    'fencegate_volume_free_inodes',
    'Inodes that are left',
    ['volume'],
    perVolume(({ freeInodes }) => freeInodes),
  );
}

function coordinatorGauges(metrics: Metrics, { coordinator }: GaugeSources): void {
  metrics.gauge('fencegate_coordinator_state', 'Always 1: the labels say what the contact with the coordinator is', ['kind', 'state'], () => {
    const { kind, state } = coordinator();
    return [{ labels: { kind, state }, value: 1 }];
  });
  metrics.gauge('fencegate_coordinator_usable', '1 while leases can be granted', [], () => {
    const { state } = coordinator();
    return [{ labels: {}, value: state === 'connected' || state === 'reconnected' ? 1 : 0 }];
  });
  metrics.gauge('fencegate_coordinator_proof_age_seconds', 'How old the last proof of the session with the coordinator is', [], () => {
    const { proofAgeMs } = coordinator();
    return proofAgeMs === null ? [] : [{ labels: {}, value: proofAgeMs / 1_000 }];
  });
}

/** A volume without locks shows 0: a series that ends would leave an alert hanging. */
function lockGauges(metrics: Metrics, sources: GaugeSources): void {
  const perVolume = (value: (figures: LockFigures) => number) => (): Reading[] => {
    const locks = sources.locks();
    return [...sources.lanes().keys()].map((volume) => {
      const figures = locks.get(volume);
      return { labels: { volume }, value: figures === undefined ? 0 : value(figures) };
    });
  };
  metrics.gauge(
    'fencegate_locks_held',
    'Leases that are held',
    ['volume'],
    perVolume(({ held }) => held),
  );
  metrics.gauge(
    'fencegate_lock_waiters',
    'Contenders that wait, over all queues of a volume',
    ['volume'],
    perVolume(({ waiting }) => waiting),
  );
  metrics.gauge(
    'fencegate_lock_queue_length',
    'The longest queue of a volume',
    ['volume'],
    perVolume(({ longestQueue }) => longestQueue),
  );
  metrics.gauge(
    'fencegate_lock_longest_held_seconds',
    'How long the lease of a volume that is held for longest is held',
    ['volume'],
    perVolume(({ longestHeldMs }) => longestHeldMs / 1_000),
  );
}

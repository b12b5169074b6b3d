import type { Clock } from '../domain/clock.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Coordinator } from './coordinator.ts';
import type { Lease } from './lease-record.ts';

/** The locks of one volume in numbers, for metrics (R23). */
export interface LockFigures {
  held: number;
  waiting: number;
  longestQueue: number;
  longestHeldMs: number;
}

/** Walks over everything that is held or waited for: asked at a scrape, never on the way of a request, and by all gauges of it at once. */
export class LockFigureBoard {
  readonly #coordinator: Pick<Coordinator<Lease>, 'entries'>;
  readonly #clock: Clock;
  #figures: ReadonlyMap<string, LockFigures> = new Map();
  #takenMs = Number.NEGATIVE_INFINITY;

  constructor(coordinator: Pick<Coordinator<Lease>, 'entries'>, clock: Clock) {
    this.#coordinator = coordinator;
    this.#clock = clock;
  }

  /** By volume; a volume without locks is not in it. At most `lockFiguresKeptMs` old. */
  read(): ReadonlyMap<string, LockFigures> {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#takenMs >= LIMITS.lockFiguresKeptMs) {
      this.#figures = figuresOf(this.#coordinator, nowMs);
      this.#takenMs = nowMs;
    }
    return this.#figures;
  }
}

function figuresOf(coordinator: Pick<Coordinator<Lease>, 'entries'>, nowMs: number): ReadonlyMap<string, LockFigures> {
  const figures = new Map<string, LockFigures>();
  for (const { look } of coordinator.entries(0)) {
    const { volume } = look.resource;
    const sum = figures.get(volume) ?? { held: 0, waiting: 0, longestQueue: 0, longestHeldMs: 0 };
    figures.set(volume, sum);
    sum.waiting += look.queueLength;
    sum.longestQueue = Math.max(sum.longestQueue, look.queueLength);
    for (const lease of look.holders) {
      if (lease.phase !== 'held') continue;
      sum.held += 1;
      sum.longestHeldMs = Math.max(sum.longestHeldMs, nowMs - lease.grantedMs);
    }
  }
  return figures;
}

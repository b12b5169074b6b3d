import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** What a gauge shows is asked for when somebody scrapes: one value, or one per label set. */
export interface Reading {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const SECONDS_SHORT = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const SECONDS_LONG = [0.01, 0.1, 0.5, 1, 5, 15, 30, 60, 120, 300, 600, 1_800, 3_600];

/**
 * The metrics of one gateway, in a registry of their own (several gateways may live in one test process). No label ever holds a
 * path, a client id or a lease: their number has no bound.
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #requests: Histogram<'method' | 'route' | 'status'>;
  readonly #refusals: Counter<'code'>;
  readonly #acquisition: Histogram<'mode' | 'result'>;
  readonly #renewalsFailed: Counter<'code'>;
  readonly #hold: Histogram<'reason'>;
  readonly #commit: Histogram;
  readonly #interruptions: Counter<'state'>;
  readonly #notCarried: Counter<'volume'>;

  constructor() {
    const registers = [this.#registry];
    collectDefaultMetrics({ register: this.#registry, prefix: 'fencegate_' });
    this.#requests = new Histogram({
      name: 'fencegate_request_seconds',
      help: 'Time from the first byte of a request to the last of its answer, by route pattern or gRPC method',
      labelNames: ['method', 'route', 'status'],
      buckets: SECONDS_SHORT,
      registers,
    });
    this.#refusals = new Counter({
      name: 'fencegate_refusals_total',
      help: 'Requests and waits that were refused, by code',
      labelNames: ['code'],
      registers,
    });
    this.#acquisition = new Histogram({
      name: 'fencegate_lock_acquisition_seconds',
      help: 'Time from asking for a lease to its grant or refusal',
      labelNames: ['mode', 'result'],
      buckets: SECONDS_SHORT,
      registers,
    });
    this.#renewalsFailed = new Counter({
      name: 'fencegate_lock_renewals_failed_total',
      help: 'Renewals of leases and heartbeats of sessions that were refused, by code',
      labelNames: ['code'],
      registers,
    });
    this.#hold = new Histogram({
      name: 'fencegate_lock_hold_seconds',
      help: 'Time from the grant of a lease to its end',
      labelNames: ['reason'],
      buckets: SECONDS_LONG,
      registers,
    });
    this.#commit = new Histogram({
      name: 'fencegate_journal_commit_seconds',
      help: 'Time from handing a decision to the journal until it is durable',
      buckets: SECONDS_SHORT,
      registers,
    });
    this.#interruptions = new Counter({
      name: 'fencegate_coordinator_interruptions_total',
      help: 'How often the contact with the coordinator was suspended, and how often its session was lost',
      labelNames: ['state'],
      registers,
    });
    this.#notCarried = new Counter({
      name: 'fencegate_attributes_not_carried_total',
      help: 'ACLs, labels and extended attributes that a file lost when it was replaced, because the gateway may not set them or the volume does not take them',
      labelNames: ['volume'],
      registers,
    });
    // An increase is only seen from a value that was there before.
    for (const state of ['suspended', 'lost']) this.#interruptions.inc({ state }, 0);
  }

  /**
   * @param route the pattern, never the URL.
   * @param status of HTTP, or the name of a gRPC status.
   */
  request(method: string, route: string, status: number | string, seconds: number): void {
    this.#requests.observe({ method, route, status: String(status) }, seconds);
  }

  refused(code: string): void {
    this.#refusals.inc({ code });
  }

  /** @param result the state of the lease (`held`, `waiting`), or the error code. */
  acquired(mode: string, result: string, seconds: number): void {
    this.#acquisition.observe({ mode, result }, seconds);
  }

  /** A client that could not renew: it comes back in time, or loses what it holds (case R22). */
  renewalFailed(code: string): void {
    this.#renewalsFailed.inc({ code });
  }

  /** @param reason the state in which the lease ended. */
  held(reason: string, seconds: number): void {
    this.#hold.observe({ reason }, seconds);
  }

  journalCommit(seconds: number): void {
    this.#commit.observe(seconds);
  }

  /** Lost: every lease was void. */
  interrupted(state: 'suspended' | 'lost'): void {
    this.#interruptions.inc({ state });
  }

  attributesNotCarried(volume: string, count: number): void {
    this.#notCarried.inc({ volume }, count);
  }

  /**
   * Adds a gauge that is read at each scrape, e.g. `fencegate_lock_queue_length`, `fencegate_volume_in_flight`,
   * `fencegate_journal_wal_bytes`. `read` answers at once, from memory, and does not throw: a scrape must never wait for a volume.
   */
  gauge(name: `fencegate_${string}`, help: string, labelNames: readonly string[], read: () => readonly Reading[]): void {
    new Gauge({
      name,
      help,
      labelNames: [...labelNames],
      registers: [this.#registry],
      collect() {
        this.reset();
        for (const { labels, value } of read()) this.set({ ...labels }, value);
      },
    });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** The text that Prometheus scrapes. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }
}

import type { LeaseMode } from './contract/answers.ts';

/** How a lease is asked for. Durations in ms. */
export interface LeaseOptions {
  /** Default `exclusive`. A `shared` lease may be held by several at once and writes nothing. */
  readonly mode?: LeaseMode;
  /** How long to stand in line. 0 tries once. Default: until `signal` aborts. */
  readonly waitMs?: number;
  /** How long the lease lives without a sign of this process; 1 000 to 3 600 000, default 30 000. The client renews it well before. */
  readonly ttlMs?: number;
  /** Ends the lease however often it is renewed; more than the margin. Default: none but the volume's. */
  readonly maxHoldMs?: number;
  /** 0 to 9, default 5. A more important one passes others in line, a bounded number of times. */
  readonly priority?: number;
  /** After an unclean end nobody is granted the resource for so long. Default: the volume's. */
  readonly lockDelayMs?: number;
  /** Up to 4 096 bytes of JSON, yours to read again. A text `reason` in it is shown with the lock: what the lease is for. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** How much too early the lease counts as over here; at most half of its time to live. Default a tenth of that, or of `maxHoldMs` where it is less; 100 to 3 000. */
  readonly marginMs?: number;
  /** Gives the wait up, and leaves the line. */
  readonly signal?: AbortSignal;
}

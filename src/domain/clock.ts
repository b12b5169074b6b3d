/** Time and randomness as the core sees them: passed in, so that a test can stop and move them. */

export interface Timer {
  cancel(): void;
}

/** A moment since the machine was started, suspend included: comparable between processes of one boot. */
export interface MachineTime {
  readonly bootId: string;
  readonly uptimeMs: number;
}

export interface Clock {
  /** Milliseconds that only grow and that count suspend. Every deadline and expiry is judged by this one (trap T25). */
  monotonicMs(): number;
  /** The time of day, for people: audit records and answers. Never for a deadline. */
  wallMs(): number;
  /** The machine's own count, which goes on over a restart of the process and which nobody sets. */
  machine(): MachineTime;
  /** Calls `run` once, not before `delayMs` has passed. Does not keep the process alive. */
  after(delayMs: number, run: () => void): Timer;
}

export interface Random {
  /** Unguessable bytes. */
  bytes(count: number): Uint8Array;
}

/** RFC 3339 UTC with milliseconds. */
export function rfc3339(wallMs: number): string {
  return new Date(wallMs).toISOString();
}

/**
 * Where a time of day before this start of the process lies on the monotonic clock, which a restart begins anew: the wall clock counts for
 * an age only where nothing better is known, and once. Never later than now, so a wall clock that went back makes nothing older than it can be shown to be.
 * @param at RFC 3339
 */
export function monotonicMsOf(at: string, clock: Clock): number {
  const ageMs = clock.wallMs() - Date.parse(at);
  return clock.monotonicMs() - (Number.isFinite(ageMs) ? Math.max(0, ageMs) : 0);
}

/** How long ago a moment of the machine's count was; `null` when it was in another boot, or on another machine. */
export function sinceMachine(at: MachineTime, clock: Clock): number | null {
  const now = clock.machine();
  const sinceMs = now.uptimeMs - at.uptimeMs;
  return now.bootId === at.bootId && Number.isFinite(sinceMs) ? Math.max(0, sinceMs) : null;
}

/** An unguessable URL-safe name of `count` random bytes. */
export function randomName(random: Random, count: number): string {
  return Buffer.from(random.bytes(count)).toString('base64url');
}

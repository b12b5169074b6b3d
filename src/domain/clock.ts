/** Time and randomness as the core sees them: passed in, so that a test can stop and move them. */

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Milliseconds that only grow and that count suspend. Every deadline and expiry is judged by this one (trap T25). */
  monotonicMs(): number;
  /** The time of day, for people: audit records and answers. Never for a deadline. */
  wallMs(): number;
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

/** An unguessable URL-safe name of `count` random bytes. */
export function randomName(random: Random, count: number): string {
  return Buffer.from(random.bytes(count)).toString('base64url');
}

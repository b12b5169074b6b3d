import type { FencegateError } from './errors.ts';

/** What happens behind a client's back, for logs and metrics. */
export type ClientEvent =
  /** A heartbeat failed; it is tried again until the leases end. `failures` in a row. */
  | { readonly type: 'renew_failed'; readonly failures: number; readonly error: unknown }
  /** An administrator ends the lease after a grace: `remainingMs` are left to rely on. `reason` is the administrator's. */
  | {
      readonly type: 'lease_breaking';
      readonly leaseRef: string;
      readonly resources: readonly string[];
      readonly reason: string | null;
      readonly remainingMs: number;
    }
  /** The gateway gives no stream of events: a loss is learned from the next heartbeat, at the latest by the own clock. */
  | { readonly type: 'watch_refused'; readonly error: unknown }
  | { readonly type: 'lease_lost'; readonly leaseRef: string; readonly resources: readonly string[]; readonly error: FencegateError }
  /** The release was not confirmed; it is tried again, and the lease ends by itself at the latest. */
  | { readonly type: 'release_failed'; readonly leaseRef: string; readonly error: unknown };

export type ClientEventListener = (event: ClientEvent) => void;

/** A listener that throws must not stop a heartbeat: its error becomes a warning of the process. */
export function guarded(listener: ClientEventListener | undefined): ClientEventListener {
  return (event) => {
    try {
      listener?.(event);
    } catch (thrown) {
      process.emitWarning(thrown instanceof Error ? thrown : String(thrown));
    }
  };
}

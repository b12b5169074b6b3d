/** What a write carries when it is made under a lease. */
export interface WriteRight {
  /** Sent as `X-Fencing-Token`. */
  readonly writeToken: string;
  /** Sent as `X-Lease-Id`. */
  readonly leaseId: string;
  /** Aborts when the lease is lost. */
  readonly signal: AbortSignal;
  covers(resource: string): boolean;
  /** Throws `lease_lost` or `lease_released`: judged by the own clock, right before anything is sent. */
  assertHeld(): void;
  /** The gateway refused the token: the lease is over, whatever the clock says. */
  refused(reason: string): void;
}

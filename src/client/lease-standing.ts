import type { LeaseMode } from './contract/answers.ts';
import type { FencegateError } from './errors.ts';
import type { HeldLeaseState } from './held-lease.ts';
import type { WriteRight } from './write-right.ts';

/** What stands behind a handle: a hold on a lease of this client, or the lease of the surrounding `fencegate exec`. */
export interface LeaseStanding extends WriteRight {
  readonly leaseRef: string | null;
  readonly resources: readonly string[];
  readonly mode: LeaseMode;
  readonly token: string;
  readonly state: HeldLeaseState;
  readonly loss: FencegateError | null;
  readonly remainingMs: number;
  readonly keptForMs: number;
  release(): Promise<void>;
  look(signal?: AbortSignal): Promise<void>;
  convert(mode: LeaseMode, options: ConvertOptions): Promise<void>;
}

export interface ConvertOptions {
  /** How long to wait for the other readers, ms. Default: until `signal` aborts. */
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
}

import type { GroupResult, SettlementNote, Unit } from './group-commit.ts';
import type { KeyedPartAtStart } from './keyed-part.ts';
import type { RetentionPolicy } from './retention.ts';
import type { DiskFailure } from './sqlite-failure.ts';
import type { TakeOver } from './take-ownership.ts';

export interface WriterData {
  readonly dataDirectory: string;
  readonly incarnation: string;
  readonly takeoverAfterMs: number;
  readonly auditKeys: readonly Uint8Array[];
  readonly retention: RetentionPolicy;
}

/** What the writer thread found when it took the journal. */
export interface WriterReady {
  readonly takeOver: TakeOver | null;
  readonly lowWater: number;
  readonly head: { readonly seq: number; readonly hash: string };
  readonly keyedPart: KeyedPartAtStart;
}

export type WriterCalls = {
  readonly open: { readonly input: null; readonly output: WriterReady };
  readonly commit: { readonly input: { readonly units: readonly Unit[]; readonly settlement: SettlementNote }; readonly output: GroupResult };
  /** Removes what is past its time, as the timer does each minute; the wall clock is given so that a test can be in the future. */
  readonly maintain: { readonly input: { readonly nowMs: number }; readonly output: null };
  readonly backup: { readonly input: { readonly destination: string }; readonly output: null };
  /** Stores the low-water mark, leaves the owner row, empties the WAL. */
  readonly close: { readonly input: SettlementNote; readonly output: null };
};

/** `health`: a probe after a failure succeeded (`null`), or upkeep failed. `checkpoint`: WAL frames left after one. */
export type WriterEvent =
  | { readonly kind: 'superseded' }
  | { readonly kind: 'health'; readonly failure: DiskFailure | null }
  | { readonly kind: 'checkpoint'; readonly walFrames: number; readonly complete: boolean };

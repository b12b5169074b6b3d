import type { Intent, Settled } from './intent.ts';
import type { OperationKnown } from './journal.ts';

/** What recovery and the lock doctor report about a volume. `evidence` is plain words: no secret, no path of the machine. */
export interface VolumeFinding {
  readonly code:
    | 'intent_unknown'
    | 'foreign_entry'
    | 'unknown_directory'
    | 'foreign_owner'
    | 'inside_another'
    | 'standby'
    | 'other_coordinator'
    | 'other_journal'
    | 'journal_behind_stamp'
    | 'stamp_unwritten'
    | 'manifest_unfinished'
    | 'redo_unfinished'
    | 'record_damaged'
    | 'volume_unavailable';
  readonly severity: 'info' | 'warning' | 'error';
  readonly volume: string;
  /** `volume/path`, when the finding is about one file. */
  readonly resource: string | null;
  readonly evidence: string;
  /** The name inside the gateway's own directory on the volume, when the finding is about one that can be removed. */
  readonly entry?: string;
}

/** What became of one intent. */
export interface SettledIntent extends Settled {
  readonly intent: Intent;
}

/** What one volume reads from the journal, and has made durable there, while it starts or starts again. */
export interface VolumeRecord {
  /**
   * Rejects with `journal_unavailable` when another process has taken the journal over: asked before anything is made on the volume, so that
   * one that was stopped, superseded and woken leaves nothing there. No fence: it may be stopped again right behind the answer.
   */
  assertOurs(): Promise<void>;
  /** Incarnation directories of ours that exist or may exist. */
  incarnations(): readonly string[];
  /** Durable when it resolves: called after the directory was made and synced. */
  published(incarnation: string): Promise<void>;
  /** Durable when it resolves: called after the directory was removed and its parent synced. */
  gone(incarnation: string): Promise<void>;
  /** The highest token ceiling that this journal ever reserved on the volume of this uuid; `null`: none. */
  reservedCeiling(volumeUuid: string): bigint | null;
  /** Durable when it resolves, and never lower than before: called before a stamp with that ceiling is written. */
  reserveCeiling(volumeUuid: string, ceiling: bigint): Promise<void>;
  /** The newest unsettled intent per resource, oldest first. */
  unsettled(): readonly Intent[];
  knows(operationId: string): OperationKnown;
  /** Another journal had the volume last: tokens up to `floor` are void. Durable, and in the audit log, when it resolves. */
  takenOver(from: string, floor: bigint): Promise<void>;
  /** Makes every outcome durable that is not the presumed one; nothing of the volume is swept before it resolves. */
  recovered(settled: readonly SettledIntent[]): Promise<void>;
}

/** What is known of the process that wrote under an incarnation: `exited` only when its end was seen. */
export type WriterState = 'exited' | 'ourselves' | 'unknown';

/**
 * How the stamp on a volume compares with our journal, and what else on the volume says that the journal was put back: `unknown_files` are in
 * an incarnation directory that it never published.
 */
export type StampVerdict = 'ok' | 'other_journal' | 'ahead_of_journal' | 'unreserved_ceiling' | 'unknown_files' | 'other_coordinator';

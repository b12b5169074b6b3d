import { GatewayError } from '../domain/errors.ts';
import type { CommitReceipt, JournalOp } from '../domain/journal.ts';
import { LIMITS } from '../domain/limits.ts';
import type { GroupResult, Unit } from './group-commit.ts';
import { journalUnavailable, recordInDoubt } from './thread-calls.ts';
import type { UnitEffects } from './unit-writer.ts';

interface QueuedUnit {
  readonly ops: Unit;
  readonly resolve: (receipt: CommitReceipt) => void;
  readonly reject: (error: GatewayError) => void;
}

export interface UnitQueueParts {
  /** Sends one group to the writer. */
  readonly send: (units: readonly Unit[]) => Promise<GroupResult>;
  /** A unit is durable; called before its `commit` resolves. */
  readonly onDurable: (effects: UnitEffects) => void;
  readonly onGroup: (result: GroupResult) => void;
  /** The next start may find these units; called before their `commit` rejects. */
  readonly onDoubt: (units: readonly Unit[]) => void;
}

export interface UnitQueueCounts {
  units: number;
  groups: number;
  failedGroups: number;
  failedUnits: number;
  overloaded: number;
  largestGroup: number;
}

/** Group commit, seen from the main thread: while one group is on its way to the disk, the next one collects. */
export class UnitQueue {
  readonly counts: UnitQueueCounts = { units: 0, groups: 0, failedGroups: 0, failedUnits: 0, overloaded: 0, largestGroup: 0 };
  readonly #parts: UnitQueueParts;
  #queued: QueuedUnit[] = [];
  #running: Promise<void> | null = null;
  #shut: GatewayError | null = null;

  constructor(parts: UnitQueueParts) {
    this.#parts = parts;
  }

  get length(): number {
    return this.#queued.length;
  }

  commit(ops: readonly JournalOp[]): Promise<CommitReceipt> {
    if (this.#shut !== null) return Promise.reject(this.#shut);
    if (this.#queued.length >= LIMITS.journalQueueMax) {
      this.counts.overloaded += 1;
      return Promise.reject(
        new GatewayError('overloaded', { detail: 'Too many decisions wait for the journal.', retryAfterMs: LIMITS.journalRetryAfterMs }),
      );
    }
    return new Promise((resolve, reject) => {
      this.#queued.push({ ops, resolve, reject });
      this.#running ??= this.#drain();
    });
  }

  /** From now on every commit rejects with `reason`; the ones in line are still carried out. */
  shut(reason: GatewayError): void {
    this.#shut ??= reason;
  }

  /** Resolves when nothing is queued or under way. */
  async idle(): Promise<void> {
    while (this.#running !== null) await this.#running;
  }

  async #drain(): Promise<void> {
    // Everything that is committed in this turn of the event loop shares the first group.
    await Promise.resolve();
    while (this.#queued.length > 0) {
      const group = this.#queued.splice(0, LIMITS.journalGroupMax);
      await this.#sendGroup(group);
    }
    this.#running = null;
  }

  async #sendGroup(group: readonly QueuedUnit[]): Promise<void> {
    let result: GroupResult;
    try {
      result = await this.#parts.send(group.map(({ ops }) => ops));
    } catch (thrown) {
      this.counts.failedGroups += 1;
      for (const unit of group) unit.reject(journalUnavailable('The journal cannot be written.', thrown));
      return;
    }
    this.#parts.onGroup(result);
    if (!result.done) {
      this.counts.failedGroups += 1;
      this.#reject(group, result);
      return;
    }
    this.counts.groups += 1;
    this.counts.units += group.length;
    this.counts.largestGroup = Math.max(this.counts.largestGroup, group.length);
    for (const [index, unit] of group.entries()) this.#answer(unit, result.units[index]);
  }

  #reject(group: readonly QueuedUnit[], { inDoubt, message }: Extract<GroupResult, { done: false }>): void {
    const cause = new Error(message);
    if (inDoubt) this.#parts.onDoubt(group.map(({ ops }) => ops));
    for (const unit of group)
      unit.reject(inDoubt ? recordInDoubt(cause) : journalUnavailable('The journal cannot be written; nothing was changed.', cause));
  }

  #answer(unit: QueuedUnit, result: Extract<GroupResult, { done: true }>['units'][number] | undefined): void {
    if (result?.ok === true) {
      this.#parts.onDurable(result.effects);
      unit.resolve({ seqs: result.effects.seqs });
      return;
    }
    this.counts.failedUnits += 1;
    // A bug of one unit: the disk is well, and trying again would not help, so this is not `journal_unavailable`.
    unit.reject(
      new GatewayError('internal', {
        detail: 'The gateway could not record its decision; nothing was changed.',
        cause: new Error(result?.message ?? 'no answer for a unit'),
      }),
    );
  }
}

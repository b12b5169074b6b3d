import { type FencingToken, fencingToken } from '../domain/fencing-token.ts';
import type { JournalOp, JournalStart, Mark } from '../domain/journal.ts';
import { floorName } from './recover.ts';

/**
 * The floor of each volume: after a rebase or an adoption every token up to it is void, also on names that this journal never heard of
 * (I2; `write-protocol.md`, "Restored or lost journal"). No mark is below it. Kept in memory, because each token is judged by it.
 */
export class Floors {
  readonly #byVolume = new Map<string, FencingToken>();

  constructor(start: Pick<JournalStart, 'meta'>, volumes: readonly string[]) {
    for (const volume of volumes) this.#set(volume, start.meta(floorName(volume)));
  }

  /** To be called when `op` is durable. */
  note(op: JournalOp): void {
    if (op.op !== 'meta_put' || !op.name.startsWith(floorName(''))) return;
    this.#set(op.name.slice(floorName('').length), op.value);
  }

  /** The mark of a resource of `volume` as far as it is above the floor; else the floor, which no lease stands behind. */
  above(volume: string, mark: Mark | null): Mark | null {
    const floor = this.#byVolume.get(volume);
    if (floor === undefined || (mark !== null && mark.token >= floor)) return mark;
    return { token: floor, leaseRef: null, principal: null, everNamed: mark?.everNamed ?? false };
  }

  #set(volume: string, value: string | null): void {
    if (value === null) this.#byVolume.delete(volume);
    else this.#byVolume.set(volume, fencingToken(BigInt(value)));
  }
}

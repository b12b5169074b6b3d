/**
 * Keeps a commit section entered while the volume does not tell whether its apply happened, and looks again every few seconds
 * (`write-protocol.md`, "Errors after the intent"). Meanwhile the resource takes no other write, and its lease stays pinned.
 */
import type { Clock, Timer } from '../domain/clock.ts';
import type { Intent, Settled } from '../domain/intent.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Volume } from '../domain/volume.ts';

export interface Unsettled {
  readonly volume: Volume;
  readonly intents: readonly Intent[];
  /** The apply, if it still runs. */
  readonly running: Promise<void>;
  /** Set when only the record is missing: the volume need not be asked. */
  readonly known: 'aborted' | null;
  /** Makes the last word durable. `found`: what each intent of a committed one was seen to have left. */
  readonly record: (outcome: 'committed' | 'aborted', found: readonly Settled[]) => Promise<void>;
  /** Leaves the section. */
  readonly left: () => void;
}

export interface OpenOperation {
  readonly operationId: string;
  readonly resource: string;
  readonly volume: string;
  /** Looking at the volume settles nothing: only the next start knows whether the journal has its intent. */
  readonly untilNextStart: boolean;
}

export interface SettleLoop {
  adopt(unsettled: Unsettled): void;
  /** Keeps a section entered for as long as this process lives: whether there is an intent is not known, so nothing may be finished here. */
  leaveToNextStart(section: Pick<Unsettled, 'volume' | 'intents'>): void;
  /** The operations that wait for an answer of their volume, or for the next start, for the doctor. */
  open(): readonly OpenOperation[];
  /** Looks now and not only at the next turn. `unknown`: it still cannot be told; `none`: no such operation is open. */
  settleNow(operationId: string): Promise<'settled' | 'unknown' | 'none'>;
  stop(): void;
}

/** `onError` hears why a round failed; the next round follows in any case. */
export function createSettleLoop(clock: Clock, onError: (error: unknown) => void): SettleLoop {
  const open = new Set<Unsettled>();
  const leftToNextStart = new Set<Pick<Unsettled, 'volume' | 'intents'>>();
  /** Has an entry from the moment the apply has ended: before, looking would prove nothing. */
  const timers = new Map<Unsettled, Timer>();
  const rounds = new Map<Unsettled, Promise<void>>();
  let stopped = false;

  const later = (unsettled: Unsettled): void => {
    if (stopped) return;
    timers.set(
      unsettled,
      clock.after(LIMITS.settleRetryMs, () => void turn(unsettled)),
    );
  };

  /** One turn at a time for each; whoever asks meanwhile waits for the one that runs. */
  const turn = (unsettled: Unsettled): Promise<void> => {
    const running = rounds.get(unsettled) ?? round(unsettled).finally(() => rounds.delete(unsettled));
    rounds.set(unsettled, running);
    return running;
  };

  const round = async (unsettled: Unsettled): Promise<void> => {
    try {
      const { outcome, found } = unsettled.known === null ? await settleAll(unsettled) : { outcome: unsettled.known, found: [] };
      if (outcome !== 'unknown') {
        await unsettled.record(outcome, found);
        open.delete(unsettled);
        timers.delete(unsettled);
        unsettled.left();
        return;
      }
    } catch (error) {
      onError(error);
    }
    later(unsettled);
  };

  return {
    adopt: (unsettled) => {
      open.add(unsettled);
      unsettled.running.then(
        () => later(unsettled),
        () => later(unsettled),
      );
    },
    leaveToNextStart: (section) => void leftToNextStart.add(section),
    open: () => [...[...open].flatMap((each) => openOf(each, false)), ...[...leftToNextStart].flatMap((each) => openOf(each, true))],
    settleNow: async (operationId) => {
      const unsettled = [...open].find(({ intents }) => intents.some((intent) => intent.operationId === operationId));
      if (unsettled === undefined) return 'none';
      const timer = timers.get(unsettled);
      if (timer === undefined) return 'unknown';
      timer.cancel();
      await turn(unsettled);
      return open.has(unsettled) ? 'unknown' : 'settled';
    },
    stop: () => {
      stopped = true;
      for (const timer of timers.values()) timer.cancel();
      timers.clear();
    },
  };
}

function openOf({ volume, intents }: Pick<Unsettled, 'volume' | 'intents'>, untilNextStart: boolean): OpenOperation[] {
  return intents.map(({ operationId, resource }) => ({ operationId, resource: resource.name, volume: volume.name, untilNextStart }));
}

/** Several intents of one operation are all or nothing: settled when each of them is. */
async function settleAll(
  unsettled: Unsettled,
): Promise<{ readonly outcome: 'committed' | 'aborted' | 'unknown'; readonly found: readonly Settled[] }> {
  const found: Settled[] = [];
  for (const intent of unsettled.intents) {
    const settled = await unsettled.volume.settle(intent);
    if (settled.settlement === 'unknown') return { outcome: 'unknown', found };
    found.push(settled);
  }
  return { outcome: found.some(({ settlement }) => settlement === 'aborted') ? 'aborted' : 'committed', found };
}

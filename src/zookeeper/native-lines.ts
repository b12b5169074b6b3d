import type { Clock } from '../domain/clock.ts';

/** As often as a line of one kind is let through; the native client writes one for each attempt at each server, several in a second. */
const AGAIN_MS = 60_000;
const KINDS_MAX = 64;
/** Time, process and thread, which differ in lines that say the same: `2026-11-29 10:00:00,123:4567(0x7f01):ZOO_ERROR@function@12: `. */
const HEAD = /^[-0-9]+ [:0-9]+,[0-9]+:[0-9]+(\(0x[0-9a-f]+\))?:/;

interface Kind {
  readonly toldMs: number;
  unsaid: number;
}

/** What the native client writes, for the log: a line that says the same as one of the last minute is counted only. */
export class NativeLines {
  readonly #clock: Clock;
  readonly #log: (line: string) => void;
  readonly #kinds = new Map<string, Kind>();

  constructor(clock: Clock, log: (line: string) => void) {
    this.#clock = clock;
    this.#log = log;
  }

  write(line: string): void {
    const kind = line.replace(HEAD, '');
    const nowMs = this.#clock.monotonicMs();
    const known = this.#kinds.get(kind);
    if (known !== undefined && nowMs - known.toldMs < AGAIN_MS) {
      known.unsaid += 1;
      return;
    }
    if (known === undefined && this.#kinds.size >= KINDS_MAX) this.#kinds.clear();
    this.#kinds.set(kind, { toldMs: nowMs, unsaid: 0 });
    this.#log(known === undefined || known.unsaid === 0 ? line : `${line} (and ${known.unsaid} times since it was last said)`);
  }
}

/**
 * Who reads a file while it is changed in place (volume option `range_writes: in-place`) could see a mixture (invariant I3). So a stream
 * that meets such a write is cut, and none is begun while one runs or while its outcome is not known.
 */
export interface InPlaceReader {
  /** True once bytes of the file may have changed since the reader came. */
  readonly cut: boolean;
  leave(): void;
}

interface Reading extends InPlaceReader {
  cut: boolean;
}

export class InPlaceWrites {
  readonly #inoOfOperation = new Map<string, bigint>();
  readonly #readers = new Map<bigint, Set<Reading>>();

  /** Before the first byte is written. Every reader of the file is cut. */
  begin(operationId: string, ino: bigint): void {
    this.#inoOfOperation.set(operationId, ino);
    for (const reader of this.#readers.get(ino) ?? []) reader.cut = true;
  }

  /** Once the outcome is known; not after an error that proves nothing. */
  end(operationId: string): void {
    this.#inoOfOperation.delete(operationId);
  }

  /** A linear look: there are as many as unfinished in-place writes, which is few. */
  isRunning(ino: bigint): boolean {
    for (const running of this.#inoOfOperation.values()) if (running === ino) return true;
    return false;
  }

  enter(ino: bigint): InPlaceReader {
    const readers = this.#readers.get(ino) ?? new Set<Reading>();
    this.#readers.set(ino, readers);
    const reader: Reading = {
      cut: this.isRunning(ino),
      leave: () => {
        readers.delete(reader);
        if (readers.size === 0 && this.#readers.get(ino) === readers) this.#readers.delete(ino);
      },
    };
    readers.add(reader);
    return reader;
  }
}

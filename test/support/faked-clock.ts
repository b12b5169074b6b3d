import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A wall clock for processes that can be set while they run; their monotonic clock goes on as it does. */
export class FakedClock {
  readonly environment: Readonly<Record<string, string>>;
  readonly #offset: string;

  /** `directory`: where the offset is kept. */
  constructor(directory: string, offsetS = 0) {
    const library = readdirSync('/usr/lib')
      .map((name) => `/usr/lib/${name}/faketime/libfaketime.so.1`)
      .find((file) => existsSync(file));
    if (library === undefined) throw new Error('the package faketime has no library here');
    this.#offset = join(directory, 'offset');
    this.environment = {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: this.#offset,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      DONT_FAKE_MONOTONIC: '1',
    };
    this.set(offsetS);
  }

  /** So many seconds ahead of the true time. */
  set(offsetS: number): void {
    writeFileSync(this.#offset, `${offsetS < 0 ? '' : '+'}${offsetS}`);
  }
}

import { refuse } from '../domain/errors.ts';
import type { Principal } from '../domain/principal.ts';

/** How many bodies a principal may have in flight: each holds a staged file and a place in its volume's lane. */
export class UploadSlots {
  readonly #max: number;
  readonly #inFlight = new Map<string, number>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Throws `too_many_uploads` before the body is asked for. */
  async run<T>(principal: Principal, upload: () => Promise<T>): Promise<T> {
    const running = this.#inFlight.get(principal.name) ?? 0;
    if (running >= this.#max)
      throw refuse('too_many_uploads', `${this.#max} uploads of this principal are already running.`, { uploads_max: this.#max });
    this.#inFlight.set(principal.name, running + 1);
    try {
      return await upload();
    } finally {
      const left = (this.#inFlight.get(principal.name) ?? 1) - 1;
      if (left === 0) this.#inFlight.delete(principal.name);
      else this.#inFlight.set(principal.name, left);
    }
  }
}

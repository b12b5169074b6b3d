import { type FencingToken, fencingToken } from '../../domain/fencing-token.ts';

/**
 * The one counter of the embedded coordinator (I6: a number is given once). What makes it durable is not here: the volume's
 * ceiling is above every number before it is used, and a start goes on above the highest ceiling and mark that it finds.
 */
export class Mint {
  #last: bigint;

  /** @param above the highest number that may ever have been issued; 0 on a new installation. */
  constructor(above: bigint) {
    this.#last = above;
  }

  /** Throws `RangeError` beyond 2^63-1. */
  next(): FencingToken {
    const token = fencingToken(this.#last + 1n);
    this.#last = token;
    return token;
  }

  /** Goes on above `token`; never goes back. */
  raiseTo(token: bigint): void {
    if (token > this.#last) this.#last = token;
  }

  get last(): bigint {
    return this.#last;
  }
}

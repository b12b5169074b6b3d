/**
 * A fencing token: a 63-bit integer that only grows, minted when a lease is granted (invariant I6: unique).
 * Inside it is a `bigint`; outside, a decimal string, because JSON numbers lose precision above 2^53 (trap T4).
 */
export type FencingToken = bigint & { readonly __brand: 'FencingToken' };

export const FENCING_TOKEN_MAX = 2n ** 63n - 1n;

const STRICT_DECIMAL = /^[1-9][0-9]{0,18}$/;

/**
 * Reads a token as a client sends it: decimal digits, no sign, no leading zero, 1 to 2^63-1 (trap T8).
 * @returns `undefined` for anything else.
 */
export function parseFencingToken(text: string): FencingToken | undefined {
  if (!STRICT_DECIMAL.test(text)) return undefined;
  const value = BigInt(text);
  return value > FENCING_TOKEN_MAX ? undefined : (value as FencingToken);
}

/** Brands a number that this gateway minted or stored. Throws `RangeError` outside 1..2^63-1. */
export function fencingToken(value: bigint): FencingToken {
  if (value < 1n || value > FENCING_TOKEN_MAX) throw new RangeError(`a fencing token lies in 1..2^63-1, not ${value}`);
  return value as FencingToken;
}

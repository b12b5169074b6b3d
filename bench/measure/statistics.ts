export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** @throws RangeError for no values. */
export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length / 2;
  const upper = sorted[Math.floor(half)];
  const lower = sorted[Math.ceil(half) - 1];
  const min = sorted[0];
  const max = sorted.at(-1);
  if (upper === undefined || lower === undefined || min === undefined || max === undefined) throw new RangeError('no values');
  return { median: (lower + upper) / 2, min, max };
}

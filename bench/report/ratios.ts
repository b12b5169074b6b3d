import { type Spread, spread } from '../measure/statistics.ts';
import type { Block, Outcome } from '../rounds.ts';
import type { Comparison, Sample } from '../rows/row.ts';

export interface Ratio {
  readonly comparison: Comparison;
  /** Of the rounds in which both gave figures; `null` when there is none. */
  readonly spread: Spread | null;
  readonly met: boolean | null;
}

/** Rate by rate of the same round, then the median: what the machine does to both at once falls out. */
export function ratiosOf(block: Block): readonly Ratio[] {
  const present = block.row.comparisons.filter(
    (one) => one.connections.includes(block.connections) && block.outcomes.has(one.of) && block.outcomes.has(one.to),
  );
  return present.map((comparison) => {
    const of = block.outcomes.get(comparison.of) ?? [];
    const to = block.outcomes.get(comparison.to) ?? [];
    const quotients = of.flatMap((outcome, round) => {
      const other = to[round];
      return other !== undefined && 'sample' in outcome && 'sample' in other
        ? [outcome.sample.requestsPerSecond / other.sample.requestsPerSecond]
        : [];
    });
    const result = quotients.length === 0 ? null : spread(quotients);
    return { comparison, spread: result, met: result === null ? null : result.median >= comparison.atLeast };
  });
}

export function samplesOf(outcomes: readonly Outcome[]): readonly Sample[] {
  return outcomes.flatMap((outcome) => ('sample' in outcome ? [outcome.sample] : []));
}

/** How far resident memory rose above what it was before the turn. */
export function memoryGrowthBytes(sample: Sample): number {
  return Math.max(0, sample.memoryAfter.peakBytes - sample.memoryBefore.residentBytes);
}

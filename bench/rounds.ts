import type { Row, Sample, Turn, TurnLength } from './rows/row.ts';
import type { Stage } from './stage.ts';

/** A turn that gave figures, or why it gave none. */
export type Outcome = { readonly sample: Sample } | { readonly problem: string };

/** All rounds of one row at one number of connections: by contestant, one outcome for each round. */
export interface Block {
  readonly row: Row;
  readonly connections: number;
  readonly outcomes: ReadonlyMap<string, readonly Outcome[]>;
}

/**
 * Lets the contestants of every row take turns, round after round, and whoever began a round is last in the next one: what
 * the machine does meanwhile then meets them all alike. @throws the signal's reason after the turn that it fell into.
 */
export async function playRounds(
  rows: readonly Row[],
  rounds: number,
  length: TurnLength,
  stage: Stage,
  signal: AbortSignal,
): Promise<readonly Block[]> {
  const blocks = rows.flatMap((row) =>
    row.connections.map((connections) => ({ row, connections, outcomes: new Map(row.turns.map((turn) => [turn.contestant, [] as Outcome[]])) })),
  );
  for (let round = 0; round < rounds; round++) {
    stage.say(`round ${round + 1} of ${rounds} ...`);
    for (const { row, connections, outcomes } of blocks) {
      if (round >= (row.roundsMax ?? rounds)) continue;
      for (const turn of rotated(row.turns, round)) {
        const outcome = await play(turn, stage, connections, length);
        // Before the outcome is told: an interrupt ends the servers under a turn, and its failure is then no news.
        signal.throwIfAborted();
        if ('problem' in outcome) stage.say(`${blockTitle(row, connections)}, ${turn.contestant}: ${outcome.problem}`);
        outcomes.get(turn.contestant)?.push(outcome);
      }
    }
  }
  return blocks;
}

/** Names a block for people. */
export function blockTitle(row: Row, connections: number): string {
  if (row.counts === null) return row.title;
  return `${row.title}, ${connections} ${row.counts ?? 'connection'}${connections === 1 ? '' : 's'}`;
}

/** One turn that fails is told and leaves the others their figures. */
async function play(turn: Turn, stage: Stage, connections: number, length: TurnLength): Promise<Outcome> {
  try {
    return { sample: await turn.run(stage, connections, length) };
  } catch (thrown) {
    return { problem: thrown instanceof Error ? thrown.message : String(thrown) };
  }
}

function rotated<T>(items: readonly T[], by: number): readonly T[] {
  const from = by % Math.max(1, items.length);
  return [...items.slice(from), ...items.slice(0, from)];
}

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Machine } from '../measure/machine.ts';
import type { Block } from '../rounds.ts';
import { ratiosOf } from './ratios.ts';

const RESULTS = fileURLToPath(new URL('../results', import.meta.url));

/** Under what circumstances the figures came about. */
export interface Run {
  readonly startedAt: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly machine: Machine;
  readonly fileSystem: string;
  readonly journalled: boolean;
  readonly versions: Readonly<Record<string, string>>;
}

/** Writes every sample of every round, and the ratios. @returns the file's path. */
export async function writeResults(run: Run, blocks: readonly Block[]): Promise<string> {
  await mkdir(RESULTS, { recursive: true });
  const path = join(RESULTS, `${run.startedAt.replaceAll(/[:.]/g, '-')}.json`);
  const rows = blocks.map((block) => ({
    row: block.row.id,
    title: block.row.title,
    connections: block.connections,
    bodyBytes: block.row.bodyBytes,
    contestants: Object.fromEntries(block.outcomes),
    ratios: ratiosOf(block).map(({ comparison, spread, met }) => ({
      of: comparison.of,
      to: comparison.to,
      goal: comparison.goal,
      atLeast: comparison.atLeast,
      ...spread,
      met,
    })),
  }));
  await writeFile(path, `${JSON.stringify({ ...run, rows }, null, 2)}\n`);
  return path;
}

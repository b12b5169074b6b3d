import { printable } from './printable.ts';
import type { Screen } from './screen.ts';

const BARE = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '  ',
} as const;

/** A table without lines, so that it can be cut with the usual tools. What is unknown is shown as `-`. */
export async function outTable(screen: Screen, head: readonly string[], rows: readonly (readonly (string | number | null)[])[]): Promise<void> {
  const { default: Table } = await import('cli-table3');
  const bold = (text: string): string => (screen.colour ? `\u001b[1m${text}\u001b[22m` : text);
  const table = new Table({ chars: BARE, style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 }, head: head.map(bold) });
  table.push(...rows.map((row) => row.map((cell) => (cell === null || cell === '' ? '-' : printable(String(cell))))));
  const lines = table.toString().split('\n');
  screen.out(`${lines.map((line) => line.trimEnd()).join('\n')}\n`);
}

/** One thing as lines of `name  value`. */
export function outFacts(screen: Screen, facts: Readonly<Record<string, string | number | boolean | null>>): void {
  const width = Math.max(...Object.keys(facts).map((name) => name.length));
  for (const [name, value] of Object.entries(facts)) screen.out(`${name.padEnd(width)}  ${value === null ? '-' : printable(String(value))}\n`);
}

import { spread } from '../measure/statistics.ts';
import { type Block, blockTitle } from '../rounds.ts';
import type { Sample } from '../rows/row.ts';
import { memoryGrowthBytes, ratiosOf, samplesOf } from './ratios.ts';

const MIB = 1024 * 1024;
/** A body from this size on has its throughput told. */
const LARGE_BYTES = MIB;
/** Above this share of a CPU the driver may be what was measured. */
const DRIVER_SHARE_MAX = 0.85;

const COLUMNS = ['contestant', 'req/s', 'MiB/s', 'p50 ms', 'p99 ms', 'CPU ms/req', 'flushes/req', 'RSS MiB', 'growth MiB', 'driver CPU'];
/** Only told where there are any. */
const ENSEMBLE_COLUMNS = ['ensemble CPU', 'heap MiB'];

/** One block for people: a table of medians over the rounds, and the ratios below it. */
export function blockText(block: Block): string {
  const { row, connections } = block;
  const all = [...block.outcomes].map(([contestant, outcomes]) => [contestant, samplesOf(outcomes)] as const);
  const lines = all.map(([contestant, samples]) => cells(contestant, samples, row.bodyBytes));
  const beside = all.map(([, samples]) => ensembleCells(samples));
  const told = ENSEMBLE_COLUMNS.map((_, column) => beside.some((line) => line[column] !== ''));
  const further = (line: readonly string[]): readonly string[] => line.filter((_, column) => told[column]);
  const title = `${blockTitle(row, connections)}${row.timed === undefined ? '' : ` (p50, p99: ${row.timed})`}`;
  return [
    title,
    table([[...COLUMNS, ...further(ENSEMBLE_COLUMNS)], ...lines.map((line, n) => [...line, ...further(beside[n] ?? [])])]),
    ...ratioLines(block),
    ...latencyLines(block),
    ...memoryLines(block),
  ].join('\n');
}

function cells(contestant: string, samples: readonly Sample[], bodyBytes: number): readonly string[] {
  if (samples.length === 0) return [contestant, ...COLUMNS.slice(1).map(() => '-')];
  const median = (value: (sample: Sample) => number): number => spread(samples.map(value)).median;
  const rate = median((sample) => sample.requestsPerSecond);
  const flushes = samples.flatMap((sample) => (sample.flushesPerRequest === null ? [] : [sample.flushesPerRequest]));
  const driver = median((sample) => sample.driverCpuShare);
  return [
    contestant,
    figure(rate),
    bodyBytes >= LARGE_BYTES ? figure((rate * bodyBytes) / MIB) : '',
    figure(median((sample) => sample.p50Ms)),
    figure(median((sample) => sample.p99Ms)),
    figure(median((sample) => sample.cpuMsPerRequest)),
    flushes.length === 0 ? '-' : figure(spread(flushes).median),
    figure(Math.max(...samples.map((sample) => sample.memoryAfter.peakBytes)) / MIB),
    figure(Math.max(...samples.map(memoryGrowthBytes)) / MIB),
    `${Math.round(driver * 100)} %${driver > DRIVER_SHARE_MAX ? ' (!)' : ''}`,
  ];
}

function ensembleCells(samples: readonly Sample[]): readonly string[] {
  return [samples.map((sample) => sample.ensembleCpuMsPerRequest), samples.map((sample) => (sample.heapBytes ?? Number.NaN) / MIB)].map((values) => {
    const known = values.filter((value) => value !== undefined && Number.isFinite(value));
    return known.length === 0 ? '' : figure(spread(known as number[]).median);
  });
}

function ratioLines(block: Block): readonly string[] {
  return ratiosOf(block).map(({ comparison, spread: result, met }) => {
    const what = `  ${comparison.of} / ${comparison.to}`;
    if (result === null) return `${what}: no round in which both gave figures`;
    return `${what}: ${times(result.median)} (${times(result.min)} to ${times(result.max)}); ${comparison.goal} wants ${times(comparison.atLeast)}: ${verdict(met)}`;
  });
}

function latencyLines(block: Block): readonly string[] {
  return (block.row.latencies ?? []).flatMap((goal) => {
    const samples = samplesOf(block.outcomes.get(goal.of) ?? []);
    if (samples.length === 0 || !goal.connections.includes(block.connections)) return [];
    const parts = [
      latency(
        'p50',
        goal.p50MsMax,
        samples.map(({ p50Ms }) => p50Ms),
      ),
      ...(goal.p99MsMax === undefined
        ? []
        : [
            latency(
              'p99',
              goal.p99MsMax,
              samples.map(({ p99Ms }) => p99Ms),
            ),
          ]),
    ];
    return [`  ${goal.of}: ${parts.join(', ')} (${goal.goal})`];
  });
}

function latency(what: string, allowedMs: number, values: readonly number[]): string {
  const { median } = spread(values);
  return `${what} ${figure(median)} ms of ${figure(allowedMs)}: ${verdict(median <= allowedMs)}`;
}

function memoryLines(block: Block): readonly string[] {
  return [...memoryMaxLines(block), ...memoryGrowthLines(block)];
}

function memoryMaxLines(block: Block): readonly string[] {
  const goal = block.row.memoryMax;
  const samples = goal === undefined ? [] : samplesOf(block.outcomes.get(goal.of) ?? []);
  if (goal === undefined || samples.length === 0) return [];
  const peak = Math.max(...samples.map(({ memoryAfter }) => memoryAfter.peakBytes));
  return [
    `  ${goal.of}: ${figure(peak / MIB)} MiB resident; ${goal.goal} allows ${figure(goal.atMostBytes / MIB)}: ${verdict(peak <= goal.atMostBytes)}`,
  ];
}

function memoryGrowthLines(block: Block): readonly string[] {
  const goal = block.row.memoryGrowth;
  const samples = goal === undefined ? [] : samplesOf(block.outcomes.get(goal.of) ?? []);
  if (goal === undefined || samples.length === 0) return [];
  const grown = Math.max(...samples.map(memoryGrowthBytes));
  return [
    `  ${goal.of}: resident memory grew by ${figure(grown / MIB)} MiB; ${goal.goal} allows ${figure(goal.atMostBytes / MIB)}: ${verdict(grown <= goal.atMostBytes)}`,
  ];
}

function verdict(met: boolean | null): string {
  return met === true ? 'met' : 'missed';
}

function times(ratio: number): string {
  return `${ratio.toFixed(2)}x`;
}

/** Three digits that say something. */
function figure(value: number): string {
  if (!Number.isFinite(value)) return '-';
  if (value >= 100) return Math.round(value).toLocaleString('en-US');
  return value
    .toPrecision(3)
    .replace(/^0\.0+$/, '0')
    .replace(/\.0+$/, '');
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  const line = (row: readonly string[]): string =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))).join('  ');
  return rows.map((row) => `  ${line(row).trimEnd()}`).join('\n');
}

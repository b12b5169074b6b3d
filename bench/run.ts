import { Endings } from './endings.ts';
import { machine } from './measure/machine.ts';
import { type Options, readOptions } from './options.ts';
import { makePlace } from './place/file-system.ts';
import { ensureInstalled } from './place/packages.ts';
import { writeResults } from './report/results.ts';
import { blockText } from './report/tables.ts';
import { type Block, playRounds } from './rounds.ts';
import type { Row } from './rows/row.ts';
import { allRows } from './rows/rows.ts';
import { Stage } from './stage.ts';
import { StopLine } from './stop-line.ts';

const INTERRUPTED = 130;
/** Above this something else takes so much of the machine that even ratios move. */
const LOAD_MAX = 0.5;
const OWN_NEEDS = [
  { command: 'mkfs.ext4', package: 'e2fsprogs' },
  { command: 'setpriv', package: 'util-linux' },
];

const endings = new Endings();
const interrupt = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    interrupt.abort(new StopLine('interrupted; ending the servers ...'));
    // Whatever is being waited for, a turn or the start of a server, ends when the servers do.
    void endings
      .run()
      .catch((thrown: unknown) => say(String(thrown)))
      .finally(() => process.exit(INTERRUPTED));
  });
}

try {
  const failed = await bench(readOptions(process.argv.slice(2)));
  process.exitCode = failed ? 1 : 0;
} catch (thrown) {
  say(thrown instanceof StopLine ? thrown.message : thrown instanceof Error ? String(thrown.stack) : String(thrown));
  process.exitCode = 1;
} finally {
  await endings.run();
}

/** @returns true when a turn gave no figures. */
async function bench(options: Options): Promise<boolean> {
  const begun = { startedAt: new Date().toISOString(), options: { ...options }, machine: machine() };
  const rows = chosenRows(options);
  if (begun.machine.load > LOAD_MAX) say(`the machine is busy (load ${begun.machine.load.toFixed(1)}): these figures are not for keeping`);
  const turns = rows.flatMap((row) => row.turns);
  await ensureInstalled([...OWN_NEEDS, ...turns.flatMap((turn) => [...turn.peer.needs, ...(turn.needs ?? [])])], say);
  const place = await makePlace(options.directory, endings, say);
  say(`files on ${place.description}`);
  const stage = new Stage(place, endings, say);
  for (const turn of turns) await stage.running(turn.peer);
  const blocks = await playRounds(rows, options.rounds, options, stage, interrupt.signal);
  const run = { ...begun, fileSystem: place.description, journalled: place.journalled, versions: await stage.versions() };
  process.stdout.write(
    `\n${run.machine.cpus} x ${run.machine.cpu}, Linux ${run.machine.kernel}, Node ${run.machine.node}, load before ${run.machine.load.toFixed(1)}\n${Object.entries(
      run.versions,
    )
      .map(([id, version]) => `${id}: ${version}`)
      .join(', ')}\n${run.fileSystem}\n`,
  );
  for (const block of blocks) process.stdout.write(`\n${blockText(block)}\n`);
  process.stdout.write(`\nresults in ${await writeResults(run, blocks)}\n`);
  return hasProblem(blocks);
}

function chosenRows(options: Options): readonly Row[] {
  const all = allRows(options);
  const unknown = [
    ...(options.only ?? []).filter((id) => !all.some((row) => row.id === id)),
    ...(options.peers ?? []).filter((id) => !all.some((row) => row.turns.some((turn) => turn.peer.id === id))),
  ];
  if (unknown.length > 0) throw new StopLine(`no row or peer has this name: ${unknown.join(', ')}`);
  const rows = all
    .filter((row) => options.only?.includes(row.id) ?? true)
    .map((row) => ({ ...row, turns: row.turns.filter((turn) => options.peers?.includes(turn.peer.id) ?? true) }))
    .filter((row) => row.turns.length > 0);
  if (rows.length === 0) throw new StopLine('no row is left to measure');
  return rows;
}

function hasProblem(blocks: readonly Block[]): boolean {
  return blocks.some((block) => [...block.outcomes.values()].some((outcomes) => outcomes.some((outcome) => 'problem' in outcome)));
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

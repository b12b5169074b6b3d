import { writeSync } from 'node:fs';
import { openJournal } from '../../src/journal/open-journal.ts';
import { journalOptions } from './journal-options.ts';
import { auditOp, raise } from './journal-samples.ts';

/**
 * A process that owns a journal: `node journal-child.js <data directory> <commit|idle> <takeover ms>`. Says `open`, then a line per thing
 * that happened. `commit`: goes on committing, a line per durable unit. `idle`: commits once for each byte on its standard input.
 */
const [, , dataDirectory = '', mode = 'idle', takeoverAfterMs = '15000'] = process.argv;

function say(line: string): void {
  writeSync(1, `${line}\n`);
}

async function main(): Promise<void> {
  const opened = await openJournal(journalOptions(dataDirectory, { takeoverAfterMs: Number(takeoverAfterMs) }));
  process.on('SIGTERM', () => {
    void opened.close().then(() => process.exit(0));
  });
  opened.journal.onSuperseded(() => say('superseded'));
  say(`open ${opened.takeOver === null ? 'start' : `take_over ${opened.takeOver.how} ${opened.takeOver.seenToExit}`}`);
  let next = Number(opened.start.highestMark() ?? 0n) + 1;
  const commit = async (): Promise<void> => {
    const token = next++;
    await opened.journal.commit([raise('demo/a.txt', token), auditOp({ requestId: `r${token}` })]);
    say(`durable ${token}`);
  };
  if (mode === 'commit') {
    const loop = async (): Promise<void> => {
      for (;;) await commit();
    };
    await Promise.all(Array.from({ length: 8 }, loop));
  }
  process.stdin.on('data', () => {
    commit().catch((error: { code?: string }) => say(`refused ${error.code ?? String(error)}`));
  });
}

main().catch((error: { message?: string }) => {
  say(`failed ${error.message ?? String(error)}`);
  process.exitCode = 1;
});

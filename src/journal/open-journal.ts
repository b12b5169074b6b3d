import type { Clock, Random } from '../domain/clock.ts';
import type { Journal, JournalStart, RefusalLog } from '../domain/journal.ts';
import { gatewayUuid, journalFile } from './data-directory.ts';
import type { KeyedPartAtStart } from './keyed-part.ts';
import { openReader } from './open-database.ts';
import { OperationsInFlight } from './operations-in-flight.ts';
import type { ReaderCalls, ReaderData } from './reader-calls.ts';
import { CountingRefusalLog } from './refusal-log.ts';
import type { RetentionPolicy } from './retention.ts';
import { type JournalStats, SqliteJournal } from './sqlite-journal.ts';
import { StartFacts } from './start-facts.ts';
import type { TakeOver } from './take-ownership.ts';
import { ThreadCalls } from './thread-calls.ts';
import { randomUuid } from './uuid.ts';
import type { WriterCalls, WriterData, WriterEvent } from './writer-calls.ts';

export interface JournalOptions {
  readonly dataDirectory: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Silence after which a living owner counts as hung, ms. */
  readonly takeoverAfterMs: number;
  /** Secrets of the audit chain: the first signs, all verify; none: a plain hash. */
  readonly auditKeys: readonly Uint8Array[];
  readonly retention: RetentionPolicy;
}

export interface OpenedJournal {
  readonly journal: Journal;
  readonly start: JournalStart;
  readonly refusals: RefusalLog;
  /** Who was in the owner row without having left it; then the start is audited as `take_over`. */
  readonly takeOver: TakeOver | null;
  /** Where the keyed part of the audit chain begins, as this start found or made it. */
  readonly keyedPart: KeyedPartAtStart;
  /** Copies the journal to a new file and marks the copy. Rejects with `invalid_request` when the file exists. */
  backup(destination: string): Promise<void>;
  /** Removes what is past its time as of `nowMs`; happens each minute by itself. */
  maintain(nowMs: number): Promise<void>;
  stats(): JournalStats;
  /** Writes what is counted, carries out what is queued, leaves the owner row. Idempotent. */
  close(): Promise<void>;
}

/**
 * Opens the journal of a data directory and takes its ownership.
 * @throws GatewayError `journal_unavailable` whose detail is the one line for the operator.
 */
export async function openJournal(options: JournalOptions): Promise<OpenedJournal> {
  let opened: SqliteJournal | null = null;
  const file = journalFile(options.dataDirectory);
  const writer = new ThreadCalls<WriterCalls>('writer-thread', writerData(options), {
    onEvent: (event) => opened?.onWriterEvent(event as WriterEvent),
    onDeath: () => opened?.onWriterDeath(),
  });
  // Started beside the writer, so that both load at the same time.
  const reader = new ThreadCalls<ReaderCalls>('reader-thread', { file, auditKeys: options.auditKeys } satisfies ReaderData, {
    onEvent: () => undefined,
    onDeath: () => undefined,
  });
  try {
    const ready = await writer.call('open', null);
    await reader.call('open', null);
    const inFlight = new OperationsInFlight();
    const uuid = gatewayUuid(options.dataDirectory, randomUuid(options.random));
    const start = new StartFacts(openReader(file), { gatewayUuid: uuid, inFlight, lowWater: ready.lowWater });
    const journal: SqliteJournal = new SqliteJournal({
      writer,
      reader,
      clock: options.clock,
      inFlight,
      head: ready.head,
      beforeQuery: () => refusals.flush(),
    });
    const refusals = new CountingRefusalLog(journal, options.clock);
    opened = journal;
    return face({ journal, start, refusals, takeOver: ready.takeOver, keyedPart: ready.keyedPart, writer, reader });
  } catch (thrown) {
    // Leaves the owner row if it was taken; a thread that never opened the journal just refuses.
    await Promise.allSettled([reader.call('close', null), writer.call('close', { lowWater: 0, closed: [] })]);
    await Promise.all([reader.terminate(), writer.terminate()]);
    throw thrown;
  }
}

function writerData({ dataDirectory, random, takeoverAfterMs, auditKeys, retention }: JournalOptions): WriterData {
  return { dataDirectory, incarnation: randomUuid(random), takeoverAfterMs, auditKeys, retention };
}

interface Parts {
  readonly journal: SqliteJournal;
  readonly start: StartFacts;
  readonly refusals: CountingRefusalLog;
  readonly takeOver: TakeOver | null;
  readonly keyedPart: KeyedPartAtStart;
  readonly writer: ThreadCalls<WriterCalls>;
  readonly reader: ThreadCalls<ReaderCalls>;
}

function face(parts: Parts): OpenedJournal {
  const { journal, start, refusals, takeOver, keyedPart, writer } = parts;
  let closing: Promise<void> | null = null;
  return {
    journal,
    start,
    refusals,
    takeOver,
    keyedPart,
    backup: async (destination) => {
      await writer.call('backup', { destination });
    },
    maintain: async (nowMs) => {
      await writer.call('maintain', { nowMs });
    },
    stats: () => journal.stats(),
    close: () => {
      closing ??= closeAll(parts);
      return closing;
    },
  };
}

async function closeAll({ journal, start, refusals, writer, reader }: Parts): Promise<void> {
  await refusals.close();
  const wasHealthy = journal.healthy;
  const settlement = await journal.drain();
  const closeReaders = async (): Promise<void> => {
    await Promise.allSettled([reader.call('close', null)]);
    await reader.terminate();
    start.close();
  };
  // The last connection to close empties the WAL into the database. That is right on a sound disk; after a failed sync nothing
  // may be written any more, and the readers, which cannot write, go last.
  if (wasHealthy) await closeReaders();
  await Promise.allSettled([writer.call('close', settlement)]);
  await writer.terminate();
  if (!wasHealthy) await closeReaders();
}

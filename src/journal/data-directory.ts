import { chmodSync, closeSync, existsSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { refuse } from '../domain/errors.ts';
import { assertLocalFileSystem } from './network-file-system.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

function hasCode(thrown: unknown, code: string): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === code;
}

export function syncDirectory(directory: string): void {
  const descriptor = openSync(directory, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

export function journalFile(dataDirectory: string): string {
  return join(dataDirectory, 'journal.sqlite');
}

function uuidFile(dataDirectory: string): string {
  return join(dataDirectory, 'gateway-uuid');
}

/** Whether a gateway was ever started here; its journal may have been lost since. */
export function isDataDirectory(directory: string): boolean {
  return existsSync(journalFile(directory)) || existsSync(uuidFile(directory));
}

/**
 * Makes the data directory (0700) and an empty database file (0600; SQLite gives its WAL the same mode). The file is only made
 * when it is not there: an open and close of a live database through `fs` would drop the POSIX locks of this process on it.
 */
export function prepareDataDirectory(dataDirectory: string): void {
  mkdirSync(dataDirectory, { recursive: true, mode: 0o700 });
  assertLocalFileSystem(dataDirectory);
  const file = journalFile(dataDirectory);
  try {
    closeSync(openSync(file, 'wx', 0o600));
    syncDirectory(dataDirectory);
  } catch (thrown) {
    if (!hasCode(thrown, 'EEXIST')) throw thrown;
    chmodSync(file, 0o600);
  }
}

/** The identity of this gateway: made once, durable before it is used, the same for ever after. */
export function gatewayUuid(dataDirectory: string, fresh: string): string {
  const file = uuidFile(dataDirectory);
  const staged = join(dataDirectory, `gateway-uuid.${fresh}`);
  const descriptor = openSync(staged, 'wx', 0o600);
  try {
    writeSync(descriptor, `${fresh}\n`);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  try {
    // `link` fails when the name exists, so of two processes that start at once both read the same one.
    linkSync(staged, file);
    syncDirectory(dataDirectory);
  } catch (thrown) {
    if (!hasCode(thrown, 'EEXIST')) throw thrown;
  } finally {
    unlinkSync(staged);
  }
  const found = readFileSync(file, 'utf8').trim();
  if (!UUID.test(found)) throw refuse('journal_unavailable', 'The file gateway-uuid in the data directory is damaged: it does not hold a UUID.');
  return found;
}

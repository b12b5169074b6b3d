import { workerData } from 'node:worker_threads';
import type { Database } from 'better-sqlite3';
import { ChainKeys } from './audit-chain.ts';
import { AuditSearch } from './audit-search.ts';
import { ChainVerifier } from './chain-verifier.ts';
import { Lookups } from './lookups.ts';
import { openReader } from './open-database.ts';
import type { ReaderCalls, ReaderData } from './reader-calls.ts';
import { serveCalls } from './serve-calls.ts';

interface OpenedReader {
  readonly db: Database;
  readonly lookups: Lookups;
  readonly search: AuditSearch;
  readonly verifier: ChainVerifier;
}

/** The thread that reads while the other one commits. Every call is one short read transaction; long answers come in steps. */
let reader: OpenedReader | null = null;

function open({ file, auditKeys }: ReaderData): OpenedReader {
  const db = openReader(file);
  return { db, lookups: new Lookups(db), search: new AuditSearch(db), verifier: new ChainVerifier(db, new ChainKeys(auditKeys)) };
}

function opened(): OpenedReader {
  if (reader === null) throw new Error('the journal is not open');
  return reader;
}

/** One snapshot for all statements of a call. */
function inSnapshot<T>(run: (opened: OpenedReader) => T): T {
  const current = opened();
  return current.db.transaction(() => run(current))();
}

serveCalls<ReaderCalls>({
  open: () => {
    reader = open(workerData as ReaderData);
    return null;
  },
  mark: ({ resourceKey }) => opened().lookups.mark(resourceKey),
  endedLease: ({ leaseRef }) => opened().lookups.endedLease(leaseRef),
  endedSession: ({ sessionRef }) => opened().lookups.endedSession(sessionRef),
  idempotent: ({ scope, nowMs }) => opened().lookups.idempotent(scope, nowMs),
  operation: ({ key, nowMs }) => inSnapshot(({ lookups }) => lookups.operation(key, nowMs)),
  search: (step) => inSnapshot(({ search }) => search.step(step)),
  verify: (step) => inSnapshot(({ verifier }) => verifier.step(step)),
  close: () => {
    opened().db.close();
    reader = null;
    return null;
  },
});

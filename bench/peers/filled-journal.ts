import Database from 'better-sqlite3';
import type { Stage } from '../stage.ts';
import { fencegateCalled, type RunningFencegate, VOLUME } from './fencegate.ts';
import { requestHead } from './http-peer.ts';

const BODY_BYTES = 1024;
const WRITERS = 64;

/** A gateway whose journal knows so many resources. Their marks go into the table directly, as granting that many leases would take longer than all other rows. */
export function fencegateWithMarks(count: number) {
  return fencegateCalled('fencegate+marks', async (running) => {
    await running.restart('SIGTERM', () => putMarks(running.journalFile, count));
  });
}

/** A gateway that has committed so many files. */
export function fencegateWithIntents(count: number) {
  return fencegateCalled('fencegate+intents', async (running, stage) => putFiles(running, count, stage));
}

function putMarks(file: string, count: number): void {
  const db = new Database(file, { fileMustExist: true });
  try {
    const insert = db.prepare("INSERT INTO marks (resource_key, token, lease_ref, principal, ever_named) VALUES (?, ?, ?, 'anonymous', 1)");
    db.transaction(() => {
      for (let token = 1; token <= count; token++) insert.run(`${VOLUME}/marked/${token % 1000}/file-${token}`, token, `ended-${token}`);
    })();
    db.pragma('wal_checkpoint(TRUNCATE)');
  } finally {
    db.close();
  }
}

/** All intents count as unsettled again: as if the process had died before it could note that any of them was applied, the worst that a crash leaves. */
export function forgetSettled(file: string): void {
  const db = new Database(file, { fileMustExist: true });
  try {
    db.prepare("UPDATE internal SET value = '0' WHERE name = 'settled_low_water'").run();
  } finally {
    db.close();
  }
}

async function putFiles(running: RunningFencegate, count: number, stage: Stage): Promise<void> {
  for (let from = 0; from < count; from += WRITERS) {
    const requests = Array.from({ length: Math.min(WRITERS, count - from) }, (_, index) => ({
      head: requestHead('PUT', running.target(`files/file-${from + index}`), running.port, {
        'Content-Type': 'application/octet-stream',
        'Content-Length': BODY_BYTES,
      }),
      bodyBytes: BODY_BYTES,
      expectsContinue: false,
    }));
    await stage.driver.run({ port: running.port, requests, statuses: [201], amount: { requestsPerConnection: 1 } });
  }
}

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EXIT } from '../exit-codes.ts';
import { interruptible } from '../interruptible.ts';
import { DemoClient } from './demo-client.ts';
import { startGateway } from './demo-gateway.ts';
import { say, sayAudit, sayCommands } from './narration.ts';
import { startZombie } from './zombie-process.ts';

/** The resource of the story; a file of the sample volume. */
const RESOURCE = 'demo/ledger/2026-q1.csv';
const TTL_MS = 2_000;
const TAKE_OVER_WAIT_MS = 10_000;

/**
 * Tells the story that Fencegate is for, with real processes and real requests: a holder is frozen, its lease ends, another
 * takes over and writes, and the first one wakes up. Resolves with the exit code: 0 only when the late write was refused. Rejects with `Interrupted`.
 */
export function demo(): Promise<number> {
  return interruptible(told);
}

async function told(signal: AbortSignal): Promise<number> {
  const directory = await mkdtemp(join(tmpdir(), 'fencegate-demo-'));
  const endings: (() => Promise<void>)[] = [() => rm(directory, { recursive: true, force: true })];
  try {
    const gateway = await startGateway(directory);
    endings.push(() => gateway.stop());
    return await story(gateway.url, endings, signal);
  } catch (thrown) {
    if (signal.aborted) throw thrown;
    say(`The demo could not be finished: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
    return EXIT.failed;
  } finally {
    for (const end of endings.reverse()) await end();
  }
}

async function story(url: string, endings: (() => Promise<void>)[], signal: AbortSignal): Promise<number> {
  say(`A gateway runs at ${url}, over a volume with sample files.`);
  const b = new DemoClient(url, 'writer-b', signal);
  const before = await b.read(RESOURCE);

  const a = startZombie({ url, resource: RESOURCE, ttlMs: TTL_MS });
  endings.push(() => a.end());
  const held = await a.held;
  say(`Writer A (process ${a.pid}) holds ${RESOURCE} with fencing token ${held.fencingToken} for ${TTL_MS / 1000} s.`);
  a.freeze();
  say('A is frozen now, in the middle of its work (SIGSTOP): a long garbage collection, a paused virtual machine.');

  say('B asks for the same file and waits in line ...');
  const lease = await b.acquire(RESOURCE, { ttlMs: 30_000, waitMs: TAKE_OVER_WAIT_MS });
  say(`A's lease has expired. B holds the file with token ${lease.fencingToken}: the mark was raised before B was told.`);
  const text = `${before.trimEnd()}\n2026-03-31,202600121,1200 bank,75.00,C\n`;
  const written = await b.write(RESOURCE, lease.fencingToken, text);
  say(`B has written ${Buffer.byteLength(text)} bytes: ${written.status}, ETag ${written.etag}.`);

  a.wake();
  say('A wakes up (SIGCONT). It does not know that time has passed, and starts its upload.');
  const late = await a.result;
  say(`A: ${late.status} ${late.code}. Of its ${late.bodyBytes} bytes ${late.bytesSent} left the socket.`);
  await b.release(lease.leaseId);
  const after = await b.read(RESOURCE);
  const refused = late.status === 412 && late.bytesSent === 0 && after === text;
  say(after === text ? 'The file is what B wrote.' : 'The file is NOT what B wrote.');

  say('\nThe audit log has it all:');
  sayAudit(await b.audit(RESOURCE));
  sayCommands(RESOURCE);
  return refused ? EXIT.ok : EXIT.failed;
}

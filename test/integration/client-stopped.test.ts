import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { FencegateClient } from '../../src/client/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { removeDirectory } from '../support/gateway-settings.ts';

const HOLDER = fileURLToPath(new URL('../support/sdk-holder-child.ts', import.meta.url));
const FORGETFUL = fileURLToPath(new URL('../support/sdk-forgetful-child.ts', import.meta.url));
const TTL_MS = 1_000;

let gateway: TestGateway;
let other: FencegateClient;
let holder: ChildProcess | undefined;

beforeAll(async () => {
  gateway = await startGateway();
  other = new FencegateClient({ url: gateway.url, clientId: 'other' });
});

afterEach(() => {
  holder?.kill('SIGKILL');
});

afterAll(async () => {
  await other.close();
  await gateway.stop();
  await removeDirectory(gateway.directory);
});

it('R34: a holder whose process was killed keeps its lease for its time to live, whoever asks from wherever, and then loses it: nothing is judged by process or host', async () => {
  const ttlMs = 5_000;
  holder = spawn(process.execPath, ['--import', 'tsx', HOLDER, gateway.url, 'v/pod', String(ttlMs)], { stdio: ['pipe', 'pipe', 'inherit'] });
  const { stdout } = holder;
  if (stdout === null) throw new Error('the holder has no pipe');
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  const token = String((await lines.next()).value).replace('sending ', '');
  const exited = once(holder, 'exit');
  holder.kill('SIGKILL');
  await exited;
  // Rescheduled under another name, on a host that cannot know whether the process lives.
  const rescheduled = new FencegateClient({ url: gateway.url, clientId: 'zombie@host-b' });
  await expect(rescheduled.lease('v/pod', { waitMs: 0 })).rejects.toMatchObject({ code: 'lock_not_acquired' });
  const lease = await rescheduled.lease('v/pod', { waitMs: 60_000 });
  expect(BigInt(lease.token)).toBeGreaterThan(BigInt(token));
  await lease.put('v/pod', 'mine');
  const decided: string[] = [];
  for await (const { action, client_id: who } of other.audit({ volume: 'v', path: 'pod', order: 'asc' })) decided.push(`${action} ${who}`);
  const ofLeases = decided.filter((line) => line.startsWith('lease_'));
  expect(ofLeases).toEqual(['lease_grant zombie', 'lease_refuse zombie@host-b', 'lease_expire zombie', 'lease_grant zombie@host-b']);
  expect(await readFile(join(gateway.volume, 'pod'), 'utf8')).toBe('mine');
  await rescheduled.close();
});

it('R25: a holder that is stopped in the middle of an upload is refused when it wakes up, says so, and does not crash', async () => {
  holder = spawn(process.execPath, ['--import', 'tsx', HOLDER, gateway.url, 'v/zombie', String(TTL_MS)], { stdio: ['pipe', 'pipe', 'inherit'] });
  const { stdin, stdout } = holder;
  if (stdin === null || stdout === null) throw new Error('the holder has no pipes');
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  expect((await lines.next()).value).toMatch(/^sending \d+$/);
  holder.kill('SIGSTOP');
  // Stopped twice as long as it would take to lose the lease: two others have it in turn, each for as long as that takes.
  const first = await other.lease('v/zombie', { ttlMs: TTL_MS });
  await first.put('v/zombie', 'mine');
  await first.release();
  const stoppedMs = performance.now();
  while (performance.now() - stoppedMs < TTL_MS) await other.withLease('v/zombie', {}, (lease) => lease.put('v/zombie', 'mine'));
  holder.kill('SIGCONT');
  stdin.write('enough\n');
  const { upload, ...rest } = JSON.parse(String((await lines.next()).value)) as Record<string, string>;
  // Whichever notices first: the clock of the woken process, or the gateway.
  expect(['lease_lost', 'stale_token', 'lease_ended']).toContain(upload);
  expect(rest).toEqual({ after: 'lease_lost', state: 'lost', signal: 'lease_lost' });
  expect(holder.exitCode ?? (await once(holder, 'exit'))[0]).toBe(0);
  expect(await readFile(join(gateway.volume, 'zombie'), 'utf8')).toBe('mine');
  const late: string[] = [];
  for await (const record of other.audit({ volume: 'v', path: 'zombie', clientId: 'zombie', outcome: 'committed', action: 'put' }))
    late.push(record.action);
  expect(late).toEqual([]);
});

it('a program that has come to its end is not kept alive by what its client does in the background', async () => {
  holder = spawn(process.execPath, ['--import', 'tsx', FORGETFUL, gateway.url, 'v/forgotten'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = holder.stdout === null ? [] : createInterface({ input: holder.stdout });
  const said: string[] = [];
  for await (const line of lines) said.push(line);
  expect(said).toEqual(['held']);
  expect(holder.exitCode ?? (await once(holder, 'exit'))[0]).toBe(0);
  // Nobody gave it back: it ends with its time to live.
  expect((await other.lock('v/forgotten')).holders).toHaveLength(1);
});

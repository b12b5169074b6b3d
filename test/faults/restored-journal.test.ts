import { cp, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { GatewayProcess } from '../support/gateway-process.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { type Answer, get, type HeldLease, lease, post, put, send } from '../support/http-client.ts';
import { until } from '../support/until.ts';

/** A data directory from a cold backup, started while the process that went on from there is only stopped: it is neither ended nor known. */

async function coldBackup(): Promise<{ directory: string; held: HeldLease; restored: () => Promise<GatewayProcess> }> {
  const directory = await newDirectory();
  onTestFinished(() => removeDirectory(directory));
  const first = await GatewayProcess.start(directory);
  const held = await lease(first.url, ['v/a.txt'], 3_600_000);
  expect((await put(first.url, 'v/a.txt', 'old', { 'x-fencing-token': held.token })).status).toBe(201);
  await first.stop();
  await cp(join(directory, 'data'), join(directory, 'copy'), { recursive: true });
  const environment = { FENCEGATE_DATA_DIR: join(directory, 'copy') };
  return { directory, held, restored: () => GatewayProcess.start(directory, { environment }) };
}

function file(directory: string): Promise<string> {
  return readFile(join(directory, 'v', 'a.txt'), 'utf8');
}

async function staged(directory: string): Promise<number> {
  const control = join(directory, 'v', '.fencegate');
  const names = (await readdir(control)).filter((name) => /^[0-9a-f]{32}$/.test(name));
  return (await Promise.all(names.map((name) => readdir(join(control, name))))).flat().length;
}

/** Refuses every write, and then, rebased, writes under a lease of its own. */
async function rebaseAndWrite(restored: GatewayProcess, directory: string): Promise<HeldLease> {
  const { json } = await get(restored.url, '/readyz');
  expect(json).toMatchObject({ volumes: [{ name: 'v', state: 'read_only', reason: expect.stringMatching(/rebase/) }] });
  expect((await get(restored.url, '/v1/admin/doctor')).text).toContain('journal_behind_stamp');
  expect((await get(restored.url, '/v1/files/v/a.txt')).text).toBe('old');
  expect((await get(restored.url, '/v1/locks/v/a.txt')).json).toMatchObject({ holders: [] });
  expect((await put(restored.url, 'v/a.txt', 'refused')).json).toMatchObject({ status: 503, code: 'volume_unavailable' });
  expect((await post(restored.url, '/v1/leases', { resource: 'v/a.txt' })).status).toBe(503);
  expect(await file(directory)).toBe('old');
  expect((await post(restored.url, '/v1/admin/fences/rebase', { reason: 'the disk was replaced' })).status).toBe(200);
  const next = await lease(restored.url, ['v/a.txt']);
  expect(await put(restored.url, 'v/a.txt', 'new', { 'x-fencing-token': next.token })).toMatchObject({ status: 200 });
  return next;
}

/** The one that was stopped takes no write any more, by itself, and the other is not disturbed. */
async function expectSuperseded(
  stopped: GatewayProcess,
  restored: GatewayProcess,
  directory: string,
  before: HeldLease,
  next: HeldLease,
): Promise<void> {
  const late = await put(stopped.url, 'v/a.txt', 'later still', { 'x-fencing-token': before.token });
  expect([late.status, late.json['code']]).toEqual([503, 'volume_unavailable']);
  await until(async () => ((await get(stopped.url, '/readyz')).text.includes('rebase') ? true : null));
  expect((await put(stopped.url, 'v/a.txt', 'later still')).status).toBe(503);
  expect(await file(directory)).toBe('new');
  expect((await put(restored.url, 'v/a.txt', 'goes on', { 'x-fencing-token': next.token })).status).toBe(200);
  expect((await get(restored.url, '/v1/audit/verify')).json).toMatchObject({ valid: true });
  expect((await get(restored.url, '/v1/admin/doctor')).text).not.toContain('journal_behind_stamp');
  await restored.stop();
}

describe('a journal from a cold backup beside a predecessor that is only stopped', () => {
  it('R33: stopped in an upload: writes wait for a rebase, and after it the rest of the upload lands nowhere', async () => {
    const { directory, held, restored } = await coldBackup();
    const later = await GatewayProcess.start(directory);
    let goOn: (value: unknown) => void = () => undefined;
    const afterHalf = new Promise((resolve) => {
      goOn = resolve;
    });
    const upload: Promise<Answer> = send(later.url, {
      method: 'PUT',
      path: '/v1/files/v/a.txt',
      headers: { 'x-fencing-token': held.token },
      body: 'LATE',
      afterHalf,
    });
    await until(async () => ((await staged(directory)) > 0 ? true : null));
    later.signal('SIGSTOP');
    const heir = await restored();
    const next = await rebaseAndWrite(heir, directory);
    later.signal('SIGCONT');
    goOn(null);
    expect((await upload).json).toMatchObject({ status: 503 });
    expect(await file(directory)).toBe('new');
    await expectSuperseded(later, heir, directory, held, next);
  });

  it('R33: stopped with nothing under way and no token issued since: only the ceiling of the stamp tells', async () => {
    const { directory, held, restored } = await coldBackup();
    const later = await GatewayProcess.start(directory);
    expect(await staged(directory)).toBe(0);
    later.signal('SIGSTOP');
    const heir = await restored();
    const next = await rebaseAndWrite(heir, directory);
    later.signal('SIGCONT');
    await expectSuperseded(later, heir, directory, held, next);
  });

  it('and with nobody who went on from there it opens by itself, its leases too', async () => {
    const { directory, held, restored } = await coldBackup();
    const heir = await restored();
    expect((await put(heir.url, 'v/a.txt', 'new', { 'x-fencing-token': held.token })).status).toBe(200);
    expect(await file(directory)).toBe('new');
  });
});

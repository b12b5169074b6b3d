import { mkdir, readdir, rename, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { GatewayProcess } from '../support/gateway-process.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { auditOf } from '../support/history.ts';
import { type Answer, attempt, get, put } from '../support/http-client.ts';
import { bindMount, cannotMount, type Mounted, mountTmpfs, run } from '../support/mounted.ts';
import { describeWhere } from '../support/needs.ts';
import { until } from '../support/until.ts';

/** A volume whose directory is taken away while it is served, in every way in which the held directory itself goes on working. */

interface Ready {
  readonly status: number;
  readonly state: unknown;
  readonly reason: unknown;
}

async function readyOf(url: string): Promise<Ready> {
  const { status, json } = await get(url, '/readyz');
  const [volume] = json['volumes'] as Readonly<Record<string, unknown>>[];
  return { status, state: volume?.['state'], reason: volume?.['reason'] };
}

const becomes = (url: string, state: string): Promise<Ready> =>
  until(async () => {
    const ready = await readyOf(url);
    return ready.state === state ? ready : null;
  });

async function place(): Promise<string> {
  const directory = await newDirectory();
  onTestFinished(() => removeDirectory(directory));
  return directory;
}

const start = (directory: string, path: string): Promise<GatewayProcess> =>
  GatewayProcess.start(directory, { yaml: `volumes:\n  v:\n    path: "${path}"\n` });

/** A mount that the test itself takes away; what is left of it at the end is. */
function removable(mount: Mounted): Mounted {
  onTestFinished(() => mount.unmount());
  return mount;
}

async function refused(url: string, name: string): Promise<Answer> {
  const answer = await put(url, `v/${name}`, 'x');
  expect([answer.status, answer.json['code'], answer.headers['retry-after']]).toEqual([503, 'volume_unavailable', expect.any(String)]);
  expect((await get(url, '/v1/files/v/kept.txt')).status).toBe(503);
  expect((await auditOf(url, `path=${name}`)).filter(({ outcome }) => outcome === 'committed')).toEqual([]);
  return answer;
}

describe('a volume whose directory is moved away', () => {
  it('is 503 with the reason in /readyz, and nothing goes into the moved directory; moved back it is served again', async () => {
    const directory = await place();
    const [path, moved] = [join(directory, 'v'), join(directory, 'moved')];
    const gateway = await start(directory, path);
    await put(gateway.url, 'v/kept.txt', 'kept');
    await rename(path, moved);
    expect(await becomes(gateway.url, 'unavailable')).toMatchObject({ status: 503, reason: expect.stringContaining('not at its path') });
    await refused(gateway.url, 'lost.txt');
    expect(await readdir(moved)).not.toContain('lost.txt');

    await mkdir(path);
    expect(await becomes(gateway.url, 'closed')).toMatchObject({ status: 503, reason: expect.stringContaining('another directory') });
    await refused(gateway.url, 'lost.txt');
    expect([await readdir(path), (await readdir(moved)).includes('lost.txt')]).toEqual([[], false]);

    await rmdir(path);
    await rename(moved, path);
    expect(await becomes(gateway.url, 'open')).toMatchObject({ status: 200, reason: null });
    expect((await put(gateway.url, 'v/kept.txt', 'replaced')).status).toBe(200);
  });

  it('while the gateway was down: a repeated request is not answered with what the intent promised, until recovery has seen the file', async () => {
    const directory = await place();
    const [path, moved] = [join(directory, 'w'), join(directory, 'moved')];
    await mkdir(path);
    const first = await start(directory, path);
    const headers = { 'idempotency-key': '"once"' };
    await first.hold('6.before_apply');
    const cut = attempt(first.url, { method: 'PUT', path: '/v1/files/v/a.txt', headers, body: 'bytes' });
    await first.until(() => first.held().size > 0);
    await first.kill();
    expect(await cut).toBeNull();
    await rename(path, moved);

    const second = await start(directory, path);
    const [operation] = first.held();
    expect((await put(second.url, 'v/a.txt', 'bytes', headers)).json).toMatchObject({ code: 'outcome_unknown', operation_id: operation });
    await rename(moved, path);
    await becomes(second.url, 'open');
    const again = await put(second.url, 'v/a.txt', 'bytes', headers);
    expect([again.status, again.headers['idempotency-replayed'], again.json['operation_id']]).toEqual([201, 'true', operation]);
  });

  it('opens what is at its path now when it is started again', async () => {
    const directory = await place();
    const path = join(directory, 'v');
    const gateway = await start(directory, path);
    await put(gateway.url, 'v/kept.txt', 'kept');
    await rename(path, join(directory, 'moved'));
    await mkdir(path);
    await becomes(gateway.url, 'closed');
    await gateway.kill();
    const again = await start(directory, path);
    expect((await put(again.url, 'v/new.txt', 'x')).status).toBe(201);
    expect(await readdir(path)).toContain('new.txt');
  });
});

describeWhere(cannotMount, 'a volume that is a mount', () => {
  it('is 503 once it is unmounted lazily, and its mount point stays empty; mounted again it is served again', async () => {
    const directory = await place();
    const disk = removable(mountTmpfs('size=8m'));
    const path = join(directory, 'v');
    await mkdir(path);
    removable(bindMount(disk.path, path));
    const gateway = await start(directory, path);
    await put(gateway.url, 'v/kept.txt', 'kept');
    run('umount', ['-l', path]);
    expect(await becomes(gateway.url, 'closed')).toMatchObject({ status: 503, reason: expect.stringContaining('another directory') });
    await refused(gateway.url, 'lost.txt');
    expect([await readdir(path), (await readdir(disk.path)).includes('lost.txt')]).toEqual([[], false]);

    run('mount', ['--bind', disk.path, path]);
    await becomes(gateway.url, 'open');
    expect((await put(gateway.url, 'v/kept.txt', 'replaced')).status).toBe(200);
  });

  it('is 503 while something else is mounted over it', async () => {
    const directory = await place();
    const path = join(directory, 'v');
    const gateway = await start(directory, path);
    await put(gateway.url, 'v/kept.txt', 'kept');
    run('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', path]);
    onTestFinished(() => run('sh', ['-c', 'umount -l "$0" || :', path]));
    await becomes(gateway.url, 'closed');
    await refused(gateway.url, 'lost.txt');
    expect(await readdir(path)).toEqual([]);
    run('umount', [path]);
    await becomes(gateway.url, 'open');
    expect((await put(gateway.url, 'v/kept.txt', 'replaced')).status).toBe(200);
  });

  it('is read_only in /readyz, which is 503, while it is mounted read-only; reads go on; mounted read-write it is open again', async () => {
    const directory = await place();
    const disk = removable(mountTmpfs('size=8m'));
    const gateway = await start(directory, disk.path);
    await put(gateway.url, 'v/kept.txt', 'kept');
    disk.remount('ro');
    expect(await becomes(gateway.url, 'read_only')).toMatchObject({ status: 503, reason: 'its file system is mounted read-only' });
    const answer = await put(gateway.url, 'v/kept.txt', 'x');
    expect([answer.status, answer.json['code']]).toEqual([403, 'volume_read_only']);
    expect((await get(gateway.url, '/v1/files/v/kept.txt')).text).toBe('kept');
    disk.remount('rw');
    expect(await becomes(gateway.url, 'open')).toMatchObject({ status: 200, reason: null });
    expect((await put(gateway.url, 'v/kept.txt', 'replaced')).status).toBe(200);
  });
});

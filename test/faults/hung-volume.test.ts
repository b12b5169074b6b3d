import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { LIMITS } from '../../src/domain/limits.ts';
import { rightsOf, setAttribute } from '../support/attributes.ts';
import { GatewayProcess, type GatewayProcessOptions } from '../support/gateway-process.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { type Attempt, auditOf, History } from '../support/history.ts';
import { attempt, get, put, send } from '../support/http-client.ts';
import { cannotMount, type Mounted, mountImage } from '../support/mounted.ts';
import { describeWhere } from '../support/needs.ts';
import { until } from '../support/until.ts';
import { writeKinds } from '../support/write-kinds.ts';

/**
 * Case B25: every change on a volume hangs in the kernel, as on an NFS mount whose server is gone or a local disk that is frozen, while another
 * volume of the same gateway must not notice.
 */

/** Not the deadlines themselves are looked at here, but what happens behind them. */
const SHORTER = {
  volumeCallDeadlineMs: 2_500,
  localChangeDeadlineMs: 4_000,
  volumeCanaryMs: 500,
  settleRetryMs: 500,
  volumeRetryMsMin: 200,
  volumeRetryMsMax: 1_000,
} as const;

interface Hanging {
  readonly directory: string;
  readonly mount: Mounted;
  readonly options: GatewayProcessOptions;
  readonly history: History;
}

/** Volumes `v` and `w` on the file system that will hang, and `sound` beside them. */
async function hangable(asNetwork: boolean): Promise<Hanging> {
  const directory = await newDirectory();
  const mount = mountImage('ext4', 64, ['-q']);
  onTestFinished(async () => {
    mount.unmount();
    await removeDirectory(directory);
  });
  for (const volume of ['v', 'w']) {
    await mkdir(join(mount.path, volume));
    await symlink(join(mount.path, volume), join(directory, volume));
  }
  await mkdir(join(directory, 'sound'));
  const path = (volume: string): string => join(mount.path, volume);
  const yaml = `volumes:\n  v:\n    path: "${path('v')}"\n  w:\n    path: "${path('w')}"\n    range_writes: in-place\n  sound:\n    path: "{dir}/sound"\n`;
  return {
    directory,
    mount,
    options: { yaml, limits: SHORTER, asNetwork: asNetwork ? [path('v'), path('w')] : [], takeoverAfterMs: 1_000 },
    history: new History(directory),
  };
}

/** Everything that must go on beside a hung volume. */
async function expectOthersGoOn(gateway: GatewayProcess): Promise<void> {
  for (let write = 0; write < 20; write += 1) {
    expect((await put(gateway.url, `sound/${write}.txt`, 'sound')).status).toBeLessThan(300);
  }
  expect((await get(gateway.url, '/healthz')).status).toBe(200);
  expect((await get(gateway.url, '/readyz')).json).toMatchObject({ ready: true });
  expect((await get(gateway.url, '/v1/admin/doctor')).status).toBe(200);
  expect((await auditOf(gateway.url, 'volume=sound')).length).toBeGreaterThanOrEqual(20);
}

/** Both volumes take writes again, by themselves. */
async function comesBack(gateway: GatewayProcess): Promise<void> {
  for (const volume of ['v', 'w']) {
    await until(async () =>
      (await attempt(gateway.url, { method: 'PUT', path: `/v1/files/${volume}/back.txt`, body: 'back' }))?.status === 201 ? true : null,
    );
  }
}

const isUnknown = ({ answer }: Attempt): boolean => answer?.status === 503 && answer.json['code'] === 'outcome_unknown';

/** Each is held at its step. One that the machine was too slow for was told so; that is not what is looked at here. */
const allInHand = (gateway: GatewayProcess, attempts: readonly Attempt[]): Promise<void> =>
  gateway.until(() => gateway.held().size + attempts.filter(({ answer }) => answer !== undefined).length >= attempts.length);

async function settledOf(gateway: GatewayProcess, attempts: readonly Attempt[]): Promise<void> {
  for (const { requestId } of attempts) {
    await until(async () => {
      const { status, json } = await get(gateway.url, `/v1/operations?request_id=${requestId}`);
      return status === 200 && (json['outcome'] === 'committed' || json['outcome'] === 'aborted') ? true : null;
    });
  }
}

/** On a local disk it is frozen for a snapshot, or the device is dying. */
const KINDS = [
  { kind: 'network mount', asNetwork: true },
  { kind: 'local disk', asNetwork: false },
];

describeWhere(cannotMount, 'B25: a volume that hangs', () => {
  describe.each(KINDS)('on a $kind', ({ asNetwork }) => {
    it('answers 503 with Retry-After to every kind of write, at once after the first; others go on; nothing was changed, and it comes back by itself', async () => {
      const { mount, options, directory, history } = await hangable(asNetwork);
      const gateway = await GatewayProcess.start(directory, options);
      const kinds = writeKinds('hung');
      for (const kind of kinds) await history.prepare(gateway.url, kind, false);
      expect(await history.leftovers()).toEqual([]);
      mount.freeze();
      const attempts = kinds.map((kind) => history.begin(gateway.url, kind, null));
      // Served while the first writes still wait for the volume to answer.
      expect((await put(gateway.url, 'sound/beside.txt', 'sound')).status).toBe(201);
      expect(attempts.filter(({ answer }) => answer !== undefined)).toEqual([]);
      await expectOthersGoOn(gateway);
      const answers = await Promise.all(attempts.map(({ done }) => done));
      expect(answers.filter((answer) => answer?.status !== 503 || answer.headers['retry-after'] === undefined)).toEqual([]);
      expect((await put(gateway.url, 'v/hung/replace.txt', 'at once')).json).toMatchObject({ code: 'volume_unavailable' });
      await expectOthersGoOn(gateway);
      mount.thaw();
      await settledOf(gateway, attempts.filter(isUnknown));
      await comesBack(gateway);
      expect(await history.check(gateway.url, attempts, () => 'either')).toEqual([]);
      expect(await history.writeNext(gateway.url, attempts)).toEqual([]);
    });

    it('hangs in the very change: 503 outcome_unknown, the resource takes no other write, and what became of it is told once the volume is back', async () => {
      const { mount, options, directory, history } = await hangable(asNetwork);
      const gateway = await GatewayProcess.start(directory, options);
      const kinds = writeKinds('apply').filter(({ name }) => name !== 'range by copy-on-write');
      for (const kind of kinds) await history.prepare(gateway.url, kind, false);
      await gateway.hold('6.before_apply');
      const attempts = kinds.map((kind) => history.begin(gateway.url, kind, null, () => gateway.nudge()));
      await allInHand(gateway, attempts);
      mount.freeze();
      await gateway.hold(null);
      await expectOthersGoOn(gateway);
      await Promise.all(attempts.map(({ done }) => done));
      const unknown = attempts.filter(isUnknown);
      // Whose call was still in line when the volume was given up was told a definite no, and who that is differs from run to run.
      expect(unknown.length).toBeGreaterThanOrEqual(4);
      const replaced = unknown.find(({ kind }) => kind.name === 'PUT that replaces');
      expect((await get(gateway.url, `/v1/operations/${String(replaced?.answer?.json['operation_id'])}`)).json).toMatchObject({ outcome: 'unknown' });
      expect(
        (await send(gateway.url, { method: 'PUT', path: '/v1/files/v/apply/replace.txt', headers: { 'x-lock-wait-ms': '0' }, body: 'no' })).status,
      ).toBeGreaterThanOrEqual(400);
      mount.thaw();
      await settledOf(gateway, attempts);
      await comesBack(gateway);
      expect(await history.check(gateway.url, attempts, () => 'either')).toEqual([]);
      expect(await history.writeNext(gateway.url, attempts)).toEqual([]);
    });

    it('hangs while a staged file is given its attributes: only its own volume waits; nothing was changed, and the process can end', async () => {
      const { mount, options, directory } = await hangable(asNetwork);
      const gateway = await GatewayProcess.start(directory, options);
      await put(gateway.url, 'v/kept.txt', 'old');
      const path = join(mount.path, 'v/kept.txt');
      setAttribute(path, 'user.owner', 'finance');
      /** A replace that is inside of `setxattr(2)` when this resolves. */
      const hang = async (): Promise<{ readonly answer: ReturnType<typeof attempt> }> => {
        await gateway.hold('6.enter');
        const before = gateway.held().size;
        const answer = attempt(gateway.url, { method: 'PUT', path: '/v1/files/v/kept.txt', body: 'new' });
        await gateway.until(() => gateway.held().size > before);
        mount.freeze();
        await gateway.hold(null);
        await until(() => (threadsInKernel(gateway.pid) > 0 ? true : null));
        return { answer };
      };
      const first = await hang();
      await expectOthersGoOn(gateway);
      expect(await first.answer).toMatchObject({ status: 503, json: { code: 'volume_unavailable' } });
      mount.thaw();
      await comesBack(gateway);
      expect(readFileSync(path, 'utf8')).toBe('old');
      expect((await put(gateway.url, 'v/kept.txt', 'new')).status).toBe(200);
      expect(rightsOf(path)).toMatchObject({ attributes: { 'user.owner': Buffer.from('finance').toString('hex') } });
      const second = await hang();
      gateway.signal('SIGTERM');
      await until(() => (isOver(gateway.pid) ? true : null));
      expect((await second.answer)?.status ?? 503).toBe(503);
      mount.thaw();
      await gateway.ended();
      expect(readFileSync(path, 'utf8')).toBe('new');
    });

    it('does not keep the process from ending when it is asked to', async () => {
      const { mount, options, directory } = await hangable(asNetwork);
      const gateway = await GatewayProcess.start(directory, options);
      const { pid } = gateway;
      mount.freeze();
      const waiting = attempt(gateway.url, { method: 'PUT', path: '/v1/files/v/a.txt', body: 'hangs' });
      await until(async () => (JSON.stringify((await get(gateway.url, '/readyz')).json).includes('does not answer') ? true : null));
      gateway.signal('SIGTERM');
      // Its thread inside of the frozen file system cannot be ended by anybody; all else of it is gone.
      await until(() => (isOver(pid) ? true : null));
      expect((await waiting)?.status ?? 503).toBe(503);
      mount.thaw();
      await gateway.ended();
      const again = await GatewayProcess.start(directory, options);
      expect((await put(again.url, 'v/a.txt', 'after')).status).toBe(201);
      expect((await get(again.url, '/v1/audit/verify')).json).toMatchObject({ valid: true });
    });

    it.each([
      ['', 'its late writes are found', false],
      [' after it told its clients that nobody knows', 'who asks again is told what came of it', true],
    ])('is taken over from a process that was killed and cannot die in it%s: the others are served at once, and %s', async (_when, _then, told) => {
      const { mount, options, directory, history } = await hangable(asNetwork);
      const gateway = await GatewayProcess.start(directory, options);
      const kinds = writeKinds('late').filter(({ name }) => name !== 'range by copy-on-write');
      for (const kind of kinds) await history.prepare(gateway.url, kind, false);
      await gateway.hold('6.before_apply');
      const attempts = kinds.map((kind) => history.begin(gateway.url, kind, null, () => gateway.nudge()));
      await allInHand(gateway, attempts);
      mount.freeze();
      await gateway.hold(null);
      await until(() => (threadsInKernel(gateway.pid) > 0 ? true : null));
      if (told) await Promise.all(attempts.map(({ done }) => done));
      gateway.signal('SIGKILL');
      const successor = await until(async () => {
        const next = await GatewayProcess.spawn(directory, options);
        await next.listening().catch(() => undefined);
        return next.url === '' ? null : next;
      });
      expect(gateway.isRunning).toBe(true);
      expect((await put(successor.url, 'v/late/replace.txt', 'no')).json).toMatchObject({ code: 'volume_unavailable' });
      await expectOthersGoOn(successor);
      mount.thaw();
      // Only now are its sockets closed.
      await gateway.ended();
      await Promise.all(attempts.map(({ done }) => done));
      expect(attempts.filter(isUnknown).length > 0).toBe(told);
      await until(async () => ((await get(successor.url, '/v1/files/v/late/')).status === 200 ? true : null));
      await until(async () => ((await get(successor.url, '/v1/files/w/late/')).status === 200 ? true : null));
      expect(await history.check(successor.url, attempts, () => 'after')).toEqual([]);
      expect(await history.writeNext(successor.url, attempts)).toEqual([]);
    });
  });
});

describeWhere(cannotMount, 'B25: a local disk that hangs in part', () => {
  it('a volume that answers looks and lets no change through is refused at once for as long as it does so, by one thread more, and then comes back', async () => {
    const { mount, options, directory } = await hangable(false);
    const gateway = await GatewayProcess.start(directory, options);
    const write = (): ReturnType<typeof put> => put(gateway.url, 'v/new.txt', 'new');
    mount.freeze();
    expect((await write()).json).toMatchObject({ code: 'volume_unavailable' });
    const details = new Set<unknown>();
    const sinceMs = Date.now();
    // Long enough for several canaries, each of which looked well when it only looked.
    await until(async () => {
      const { status, json } = await write();
      expect(status).toBe(503);
      details.add(json['detail']);
      return Date.now() - sinceMs > 8 * SHORTER.volumeCanaryMs ? true : null;
    });
    expect([...details].filter((detail) => String(detail).includes('in time'))).toEqual([]);
    expect(threadsInKernel(gateway.pid)).toBeLessThanOrEqual(2);
    await expectOthersGoOn(gateway);
    mount.thaw();
    await comesBack(gateway);
  });

  it('a disk that hangs holds up a look at what is not in memory, and nothing but its volume', async () => {
    const directory = await newDirectory();
    const content = join(directory, 'content');
    const cold = Array.from({ length: 8 }, (_, index) => `cold-${index}/inside`);
    for (const name of cold) await mkdir(join(content, name), { recursive: true });
    const disk = mountImage('ext4', 128, ['-q']);
    const inner = mountImage('ext4', 64, ['-q', '-d', content], () => undefined, disk.path);
    onTestFinished(async () => {
      disk.thaw();
      inner.unmount();
      disk.unmount();
      await removeDirectory(directory);
    });
    await mkdir(join(directory, 'sound'));
    const yaml = `volumes:\n  v:\n    path: "${inner.path}"\n  sound:\n    path: "{dir}/sound"\n`;
    const gateway = await GatewayProcess.start(directory, { yaml, limits: SHORTER });
    expect((await put(gateway.url, 'v/a.txt', 'before')).status).toBe(201);
    disk.freeze();
    const hung = attempt(gateway.url, { method: 'PUT', path: '/v1/files/v/large.bin', body: 'x'.repeat(3_000_000) });
    await until(() => (threadsInKernel(gateway.pid) > 0 ? true : null));
    const sinceMs = Date.now();
    await until(() => (Date.now() - sinceMs > 2 * LIMITS.volumeLateMs ? true : null));
    const looks = cold.map((name) => attempt(gateway.url, { method: 'GET', path: `/v1/files/v/${name}` }));
    await expectOthersGoOn(gateway);
    expect((await hung)?.status).toBe(503);
    for (const look of looks) expect(await look).toMatchObject({ status: 503, json: { code: 'volume_unavailable' } });
    await expectOthersGoOn(gateway);
    disk.thaw();
    await until(async () => ((await put(gateway.url, 'v/a.txt', 'after')).status === 200 ? true : null));
    expect((await get(gateway.url, '/v1/files/v/cold-0/')).status).toBe(200);
  });
});

/** The main thread has ended; other threads may still be inside a system call. */
function isOver(pid: number): boolean {
  try {
    return /^\d+ \(.*\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return true;
  }
}

function threadsInKernel(pid: number): number {
  return readdirSync(`/proc/${pid}/task`).filter((thread) => /^\d+ \(.*\) D /.test(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8'))).length;
}

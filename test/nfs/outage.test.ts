import { mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { LIMITS } from '../../src/domain/limits.ts';
import { GatewayProcess, type GatewayProcessOptions } from '../support/gateway-process.ts';
import { removeDirectory } from '../support/gateway-settings.ts';
import { type Attempt, auditOf, History } from '../support/history.ts';
import { attempt, get, put } from '../support/http-client.ts';
import { cutOff, freezeServer, type Outage, stopServer } from '../support/nfs-control.ts';
import { TIER } from '../support/tier.ts';
import { until } from '../support/until.ts';
import { onTheServer, VOLUME_BASE } from '../support/volume-base.ts';
import { stagedNames } from '../support/volume-snapshot.ts';
import { type WriteKind, writeKinds } from '../support/write-kinds.ts';

/** B25: the server of an export is gone in the middle of writes, in each way in which a server can be gone. */

interface Place {
  readonly directory: string;
  /** The directories of the volumes, as the server has them. */
  readonly exported: string;
  readonly options: GatewayProcessOptions;
}

/** Volumes `v` and `w` on NFS, `sound` and everything else on a local disk: a test must be able to start a gateway while the server is gone. */
async function directories(): Promise<Place> {
  const directory = mkdtempSync(join(tmpdir(), 'fencegate-outage-'));
  const mounted = mkdtempSync(join(VOLUME_BASE, 'fencegate-outage-'));
  for (const volume of ['v', 'w']) {
    mkdirSync(join(mounted, volume));
    symlinkSync(join(mounted, volume), join(directory, volume));
  }
  mkdirSync(join(directory, 'sound'));
  onTestFinished(async () => {
    for (const each of [directory, mounted]) await removeDirectory(each);
  });
  const path = (volume: string): string => join(mounted, volume);
  const yaml = `volumes:\n  v:\n    path: "${path('v')}"\n  w:\n    path: "${path('w')}"\n    range_writes: in-place\n  sound:\n    path: "{dir}/sound"\n`;
  return { directory, exported: onTheServer(mounted), options: { yaml, takeoverAfterMs: 1_000 } };
}

async function begin(how: () => Promise<Outage>): Promise<Outage> {
  const outage = await how();
  onTestFinished(() => outage.lift());
  return outage;
}

/** Everything that must go on beside a volume whose server is gone, and wait for none of its calls. */
async function othersGoOn({ url }: GatewayProcess): Promise<void> {
  const took: number[] = [];
  const timed = async <T>(request: () => Promise<T>): Promise<T> => {
    const sentMs = performance.now();
    const answer = await request();
    took.push(performance.now() - sentMs);
    return answer;
  };
  for (let write = 0; write < 5; write += 1) expect((await timed(() => put(url, `sound/${write}.txt`, 'sound'))).status).toBeLessThan(300);
  expect((await timed(() => get(url, '/healthz'))).status).toBe(200);
  expect((await timed(() => get(url, '/readyz'))).json).toMatchObject({ ready: true });
  expect((await timed(() => get(url, '/metrics'))).status).toBe(200);
  expect((await timed(() => auditOf(url, 'volume=sound'))).length).toBeGreaterThanOrEqual(5);
  expect(median(took)).toBeLessThan(LIMITS.volumeCallDeadlineMs / 4);
}

function median(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN;
}

/** Both volumes take writes again, by themselves. */
async function comesBack({ url }: GatewayProcess): Promise<void> {
  for (const volume of ['v', 'w'])
    await until(async () =>
      (await attempt(url, { method: 'PUT', path: `/v1/files/${volume}/back.txt`, body: 'back' }))?.status === 201 ? true : null,
    );
}

async function settled({ url }: GatewayProcess, attempts: readonly Attempt[]): Promise<void> {
  for (const { requestId, answer } of attempts) {
    if (answer?.status !== 503 || answer.json['code'] !== 'outcome_unknown') continue;
    await until(async () => ((await get(url, `/v1/operations?request_id=${requestId}`)).json['outcome'] !== 'unknown' ? true : null));
  }
}

/** Half of each body is staged, the other half comes once `rest` resolves; of the kinds that have a body. */
async function inTheMiddleOfStaging(gateway: GatewayProcess, history: History, exported: string, rest: Promise<void>): Promise<Attempt[]> {
  const kinds = writeKinds('cut').flatMap((kind): WriteKind[] =>
    kind.request.body === undefined || kind.request.path.startsWith('/v1/files/') === false
      ? []
      : [{ ...kind, request: { ...kind.request, afterHalf: rest } }],
  );
  for (const kind of kinds) await history.prepare(gateway.url, kind, false);
  const attempts = kinds.map((kind) => history.begin(gateway.url, kind, null));
  const staged = (): number => ['v', 'w'].flatMap((volume) => stagedNames(join(exported, volume))).length;
  await until(() => (staged() >= kinds.length ? true : null));
  return attempts;
}

async function heldAt(step: '4.staged' | '6.before_apply', gateway: GatewayProcess, history: History): Promise<Attempt[]> {
  const kinds = writeKinds('cut');
  for (const kind of kinds) await history.prepare(gateway.url, kind, false);
  await gateway.hold(step);
  const attempts = kinds.map((kind) => history.begin(gateway.url, kind, null, () => gateway.nudge()));
  await gateway.until(() => gateway.held().size + attempts.filter(({ answer }) => answer !== undefined).length >= kinds.length);
  return attempts;
}

const OUTAGES = [
  ['is cut off', cutOff],
  ['ends', stopServer],
  ['hangs', freezeServer],
] as const;
const MOMENTS = ['staging', 'fsync', 'rename'] as const;

/** The short tier has each moment and two of the outages. */
const SHORT: readonly string[] = ['is cut off/staging', 'is cut off/fsync', 'hangs/rename'];
const TABLE = OUTAGES.flatMap(([what, how]) => MOMENTS.map((moment) => [what, moment, how] as const)).filter(
  ([what, moment]) => TIER.everyOutage || SHORT.includes(`${what}/${moment}`),
);

describe('B25: the server', () => {
  it.each(TABLE)(
    '%s in the middle of the %s: 503 with Retry-After, others go on, nothing is spawned, and once it is back every write is whole or not there',
    async (_what, moment, how) => {
      const { directory, exported, options } = await directories();
      const history = new History(directory);
      const gateway = await GatewayProcess.start(directory, options);
      let send: () => void = () => undefined;
      const rest = new Promise<void>((resolve) => {
        send = resolve;
      });
      const attempts =
        moment === 'staging'
          ? await inTheMiddleOfStaging(gateway, history, exported, rest)
          : await heldAt(moment === 'fsync' ? '4.staged' : '6.before_apply', gateway, history);
      const outage = await begin(how);
      send();
      await gateway.hold(null);
      const sentMs = performance.now();
      const told = Promise.all(attempts.map(({ done }) => done)).then(() => performance.now() - sentMs);
      await othersGoOn(gateway);
      expect(await told).toBeLessThan(2 * LIMITS.volumeCallDeadlineMs);
      const answers = await Promise.all(attempts.map(({ done }) => done));
      for (const answer of answers) if (answer?.status === 503) expect(answer.headers['retry-after']).toBeDefined();
      expect(answers.some((answer) => answer?.status === 503)).toBe(true);
      expect((await put(gateway.url, 'v/cut/replace.txt', 'at once')).status).toBe(503);
      await othersGoOn(gateway);
      expect((await get(gateway.url, '/v1/admin/doctor')).status).toBe(200);
      expect(gateway.spawned).toBe(0);
      await outage.lift();
      await comesBack(gateway);
      await settled(gateway, attempts);
      expect(await history.check(gateway.url, attempts, () => 'either')).toEqual([]);
      expect(await history.writeNext(gateway.url, attempts)).toEqual([]);
    },
  );

  it.each(OUTAGES.slice(0, TIER.everyOutage ? OUTAGES.length : 1))(
    '%s: a gateway that is asked to ends in time, the one that is started meanwhile serves what is well, and what was begun late changes nothing',
    async (_what, how) => {
      const { directory, exported, options } = await directories();
      const gateway = await GatewayProcess.start(directory, options);
      expect((await put(gateway.url, 'v/a.txt', 'before')).status).toBe(201);
      const { pid } = gateway;
      const outage = await begin(how);
      const waiting = attempt(gateway.url, { method: 'PUT', path: '/v1/files/v/a.txt', body: 'hangs' });
      await until(async () => (JSON.stringify((await get(gateway.url, '/readyz')).json).includes('does not answer') ? true : null));
      gateway.signal('SIGTERM');
      // Threads inside of the mount cannot be ended by anybody; all else of it is gone.
      await until(() => (isOver(pid) ? true : null));
      const successor = await until(async () => {
        const next = await GatewayProcess.spawn(directory, options);
        await next.listening().catch(() => undefined);
        return next.url === '' ? null : next;
      });
      expect((await put(successor.url, 'v/a.txt', 'no')).json).toMatchObject({ code: 'volume_unavailable' });
      await othersGoOn(successor);
      await outage.lift();
      await gateway.ended();
      await waiting;
      await until(async () =>
        (await attempt(successor.url, { method: 'PUT', path: '/v1/files/v/b.txt', body: 'after' }))?.status === 201 ? true : null,
      );
      expect((await get(successor.url, '/v1/files/v/a.txt')).text).toBe('before');
      expect((await get(successor.url, '/v1/audit/verify')).json).toMatchObject({ valid: true });
      expect(readdirSync(join(exported, 'v')).sort()).toEqual(['.fencegate', 'a.txt', 'b.txt']);
    },
  );
});

/** The main thread has ended; other threads may still be inside a system call. */
function isOver(pid: number): boolean {
  try {
    return /^\d+ \(.*\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return true;
  }
}

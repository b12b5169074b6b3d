import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Step } from '../../src/domain/steps.ts';
import { newDirectory, removeDirectory } from '../support/gateway.ts';
import { GatewayProcess, type GatewayProcessOptions } from '../support/gateway-process.ts';
import { auditOf, History } from '../support/history.ts';
import { attempt, get, put } from '../support/http-client.ts';
import { cutOff } from '../support/nfs-control.ts';
import { until } from '../support/until.ts';
import { writeKinds } from '../support/write-kinds.ts';

/** B25: the server of an export is gone in the middle of a write. Packets vanish; nothing is refused. */

interface Cut {
  readonly directory: string;
  readonly options: GatewayProcessOptions;
}

/** Volumes `v` and `w` on NFS, `sound` on a local disk. */
async function directories(): Promise<Cut> {
  const directory = await newDirectory();
  const sound = mkdtempSync(join(tmpdir(), 'fencegate-sound-'));
  for (const volume of ['v', 'w']) mkdirSync(join(directory, volume));
  onTestFinished(async () => {
    await removeDirectory(directory);
    rmSync(sound, { recursive: true, force: true });
  });
  const yaml = `volumes:\n  v:\n    path: "{dir}/v"\n  w:\n    path: "{dir}/w"\n    range_writes: in-place\n  sound:\n    path: "${sound}"\n`;
  return { directory, options: { yaml, takeoverAfterMs: 1_000 } };
}

async function othersGoOn({ url }: GatewayProcess): Promise<void> {
  for (let write = 0; write < 5; write += 1) expect((await put(url, `sound/${write}.txt`, 'sound')).status).toBeLessThan(300);
  expect((await get(url, '/healthz')).status).toBe(200);
  expect((await get(url, '/readyz')).json).toMatchObject({ ready: true });
  expect((await auditOf(url, 'volume=sound')).length).toBeGreaterThanOrEqual(5);
}

/** Of the numbered steps: while the bytes are staged, before their fsync, before the change of the name. */
const IN_THE_MIDDLE: readonly (readonly [string, Step])[] = [
  ['of the fsync', '4.staged'],
  ['of the change', '6.before_apply'],
];

describe('B25: the gateway is cut off from the server', () => {
  it.each(IN_THE_MIDDLE)(
    'in the middle %s: 503 with Retry-After, others go on, and once it is back every write is whole or not there',
    async (_, step) => {
      const { directory, options } = await directories();
      const history = new History(directory);
      const gateway = await GatewayProcess.start(directory, options);
      const kinds = writeKinds('cut').filter(({ name }) => ['PUT that replaces', 'append', 'range in place', 'DELETE', 'MOVE'].includes(name));
      for (const kind of kinds) await history.prepare(gateway.url, kind, false);
      await gateway.hold(step);
      const attempts = kinds.map((kind) => history.begin(gateway.url, kind, null, () => gateway.nudge()));
      await gateway.until(() => gateway.held().size + attempts.filter(({ answer }) => answer !== undefined).length >= kinds.length - 2);
      const cut = await cutOff();
      onTestFinished(() => cut.lift());
      await gateway.hold(null);
      await othersGoOn(gateway);
      const answers = await Promise.all(attempts.map(({ done }) => done));
      for (const answer of answers) if (answer?.status === 503) expect(answer.headers['retry-after']).toBeDefined();
      expect(answers.some((answer) => answer?.status === 503)).toBe(true);
      expect((await put(gateway.url, 'v/cut/replace.txt', 'at once')).status).toBe(503);
      await othersGoOn(gateway);
      await cut.lift();
      await until(async () =>
        (await attempt(gateway.url, { method: 'PUT', path: '/v1/files/v/back.txt', body: 'back' }))?.status === 201 ? true : null,
      );
      for (const { requestId, answer } of attempts) {
        if (answer?.status !== 503 || answer.json['code'] !== 'outcome_unknown') continue;
        await until(async () => ((await get(gateway.url, `/v1/operations?request_id=${requestId}`)).json['outcome'] !== 'unknown' ? true : null));
      }
      expect(await history.check(gateway.url, attempts, () => 'either')).toEqual([]);
      expect(await history.writeNext(gateway.url, attempts)).toEqual([]);
    },
  );

  it('ends in time when asked to, and a process that is started meanwhile serves what is well; what was begun late changes nothing', async () => {
    const { directory, options } = await directories();
    const gateway = await GatewayProcess.start(directory, options);
    expect((await put(gateway.url, 'v/a.txt', 'before')).status).toBe(201);
    const cut = await cutOff();
    onTestFinished(() => cut.lift());
    const waiting = attempt(gateway.url, { method: 'PUT', path: '/v1/files/v/a.txt', body: 'hangs' });
    await until(async () => (JSON.stringify((await get(gateway.url, '/readyz')).json).includes('does not answer') ? true : null));
    gateway.signal('SIGTERM');
    const successor = await until(async () => {
      const next = await GatewayProcess.spawn(directory, options);
      await next.listening().catch(() => undefined);
      return next.url === '' ? null : next;
    });
    expect((await put(successor.url, 'v/a.txt', 'no')).json).toMatchObject({ code: 'volume_unavailable' });
    await othersGoOn(successor);
    await cut.lift();
    await gateway.ended();
    await waiting;
    await until(async () =>
      (await attempt(successor.url, { method: 'PUT', path: '/v1/files/v/b.txt', body: 'after' }))?.status === 201 ? true : null,
    );
    expect((await get(successor.url, '/v1/files/v/a.txt')).text).toBe('before');
    expect((await get(successor.url, '/v1/audit/verify')).json).toMatchObject({ valid: true });
  });
});

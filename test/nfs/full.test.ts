import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { removeDirectory } from '../support/gateway-settings.ts';
import { auditOf, History } from '../support/history.ts';
import { get, patiently, put } from '../support/http-client.ts';
import { IS_QUOTA, IS_SMALL } from '../support/nfs-control.ts';
import { until } from '../support/until.ts';
import { newGatewayDirectory, onTheServer, VOLUME_BASE } from '../support/volume-base.ts';
import { volumesOpen } from '../support/volumes-open.ts';
import { STORING, TWO_VOLUMES, type WriteKind, writeKinds } from '../support/write-kinds.ts';

/**
 * X8, F4: on NFS a full disk, and a quota, is reported by fsync alone; every write before it succeeded. The export has 16 MiB; with a
 * quota the server lets its one user have less.
 */

/** What is written past all clients, until nothing fits any more. */
const BALLAST = join(onTheServer(VOLUME_BASE), 'ballast');

function fill(): void {
  for (const bytes of [1_048_576, 65_536, 4_096, 1_024]) {
    for (let more = true; more; ) {
      try {
        writeFileSync(BALLAST, Buffer.alloc(bytes, 'b'), { flag: 'as' });
      } catch (thrown) {
        if (!(thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOSPC')) throw thrown;
        more = false;
      }
    }
  }
}

let gateway: TestGateway;
let history: History;

async function begin(): Promise<void> {
  const directory = newGatewayDirectory();
  await mkdir(join(directory, 'w'));
  history = new History(directory);
  gateway = await startGateway({ directory, yaml: TWO_VOLUMES });
  await volumesOpen(gateway.url);
}

async function end(): Promise<void> {
  rmSync(BALLAST, { force: true });
  await gateway.stop();
  await removeDirectory(gateway.directory);
}

describe.runIf(IS_SMALL || IS_QUOTA)('an export that a body does not fit on', () => {
  beforeAll(begin);
  afterAll(end);

  it('refuses it with 507; the old bytes stay, nothing staged is left, and what fits goes through', async () => {
    const kept = 'kept '.repeat(1_000);
    const first = await put(gateway.url, 'v/kept.txt', kept);
    expect(first.status).toBe(201);
    for (const round of [1, 2]) {
      const refused = await put(gateway.url, 'v/kept.txt', Buffer.alloc(24 * 1_048_576, round));
      expect([round, refused.status, refused.json['code']]).toEqual([round, 507, 'insufficient_storage']);
      const served = await get(gateway.url, '/v1/files/v/kept.txt');
      expect([served.text === kept, served.headers['etag']]).toEqual([true, first.headers['etag']]);
      expect(await history.leftovers()).toEqual([]);
    }
    // The server takes a moment to give back what a removed file had.
    await until(async () => ((await put(gateway.url, 'v/small.txt', 'fits')).status === 201 ? true : null));
    const { json } = await get(gateway.url, '/readyz');
    expect(json).toMatchObject({ ready: true, volumes: [{ state: 'open' }, { state: 'open' }] });
  });
});

describe.runIf(IS_SMALL && !IS_QUOTA)('an export that is full', () => {
  beforeAll(begin);
  afterAll(end);

  it('B34: 507 for every kind of write that stores bytes, old files whole, nothing left over; the next write goes once there is space', async () => {
    const makesRoom = ({ name }: WriteKind): boolean => !STORING.includes(name);
    const kinds = writeKinds('full').toSorted((a, b) => Number(makesRoom(a)) - Number(makesRoom(b)));
    for (const kind of kinds) await history.prepare(gateway.url, kind, false);
    fill();
    const attempts = [];
    for (const kind of kinds) {
      const made = history.begin(gateway.url, kind, null);
      await made.done;
      attempts.push(made);
    }
    expect(await history.check(gateway.url, attempts, () => 'before')).toEqual([]);
    const refused = attempts.filter(({ answer }) => answer == null || answer.status > 299);
    expect(refused.map(({ kind }) => kind.name)).toEqual(expect.arrayContaining(STORING));
    expect(refused.map(({ answer }) => answer?.json['code'])).toEqual(refused.map(() => 'insufficient_storage'));
    for (const { requestId } of refused)
      expect((await auditOf(gateway.url, `request_id=${requestId}`)).at(-1)).toMatchObject({ code: 'insufficient_storage' });
    rmSync(BALLAST);
    expect(await history.writeNext(gateway.url, attempts)).toEqual([]);
  });

  it('an append that can be staged and does not fit behind its file did not happen', async () => {
    const old = 'o'.repeat(10_000);
    const { headers } = await put(gateway.url, 'v/log.txt', old);
    const room = join(onTheServer(VOLUME_BASE), 'room');
    writeFileSync(room, Buffer.alloc(400 * 1_024), { flush: true });
    fill();
    rmSync(room);
    const request = { method: 'PATCH', path: '/v1/files/v/log.txt', headers: { 'x-update-range': 'append' }, body: 'n'.repeat(300 * 1_024) };
    const refused = await patiently(gateway.url, request);
    expect([refused.status, refused.json['code']]).toEqual([507, 'insufficient_storage']);
    const served = await get(gateway.url, '/v1/files/v/log.txt');
    expect([served.text === old, served.headers['etag'] === headers['etag']]).toEqual([true, true]);
    rmSync(BALLAST);
    expect((await patiently(gateway.url, request)).status).toBe(200);
    expect(readdirSync(join(gateway.volume)).sort()).toContain('log.txt');
  });
});

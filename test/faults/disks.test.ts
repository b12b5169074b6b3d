import { mkdir, readdir, readFile, rm, stat, statfs, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { fillDisk } from '../support/fill-disk.ts';
import { GatewayProcess } from '../support/gateway-process.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { auditOf, History } from '../support/history.ts';
import { type Answer, get, patiently, put, send } from '../support/http-client.ts';
import { cannotMount, type Mounted, mountImage, mountTmpfs } from '../support/mounted.ts';
import { describeWhere } from '../support/needs.ts';
import { until } from '../support/until.ts';
import { volumeSnapshot } from '../support/volume-snapshot.ts';
import { STORING, type WriteKind, writeKinds } from '../support/write-kinds.ts';

/** Disks that are full, read-only or gone, for real: the right refusal, its record, nothing changed, and all well once they are again. */

interface Place {
  readonly directory: string;
  readonly mount: Mounted;
  readonly history: History;
}

const FILE_SYSTEMS = [
  ['tmpfs', (mib: number) => mountTmpfs(`size=${mib}m`)],
  ['ext4', (mib: number) => mountImage('ext4', mib, ['-q', '-m', '0'])],
] as const;

/** Volumes `v` and `w` side by side on one small file system. */
async function smallDisk(mount: Mounted): Promise<Place> {
  const directory = await newDirectory();
  onTestFinished(async () => {
    mount.unmount();
    await removeDirectory(directory);
  });
  for (const volume of ['v', 'w']) {
    await mkdir(join(mount.path, volume));
    await symlink(join(mount.path, volume), join(directory, volume));
  }
  return { directory, mount, history: new History(directory) };
}

function start({ directory, mount }: Place): Promise<GatewayProcess> {
  const yaml = `volumes:\n  v:\n    path: "${mount.path}/v"\n  w:\n    path: "${mount.path}/w"\n    range_writes: in-place\n`;
  return GatewayProcess.start(directory, { yaml });
}

/** What `/readyz` says of volume `v`, once its space was looked at. */
function readyVolume(url: string): Promise<Readonly<Record<string, unknown>>> {
  return until(async () => {
    const { json } = await get(url, '/readyz');
    const volume = (json['volumes'] as Readonly<Record<string, unknown>>[]).find(({ name }) => name === 'v');
    return volume === undefined || volume['total_bytes'] === null ? null : volume;
  });
}

const codeOf = (answer: Answer | null | undefined): unknown => (answer == null ? null : answer.status < 300 ? answer.status : answer.json['code']);

/** Each kind is tried; those that fail must do so with `code`, and leave everything as it was. */
async function tried(gateway: GatewayProcess, { history }: Place, kinds: readonly WriteKind[], code: string): Promise<string[]> {
  const attempts = [];
  for (const kind of kinds) {
    const made = history.begin(gateway.url, kind, null);
    await made.done;
    attempts.push(made);
  }
  expect(await history.check(gateway.url, attempts, () => 'before')).toEqual([]);
  const refused = attempts.filter(({ answer }) => answer == null || answer.status > 299);
  expect(refused.map(({ answer }) => codeOf(answer))).toEqual(refused.map(() => code));
  for (const { requestId } of refused) expect((await auditOf(gateway.url, `request_id=${requestId}`)).at(-1)).toMatchObject({ code });
  return refused.map(({ kind }) => kind.name);
}

describeWhere(cannotMount, 'a disk', () => {
  it.each(FILE_SYSTEMS)(
    'B34: a full %s: 507, old files whole, nothing left over; the next write goes once there is space',
    async (_type, mountOf) => {
      const place = await smallDisk(mountOf(16));
      const gateway = await start(place);
      // Those that make room go last.
      const makesRoom = ({ name }: WriteKind): boolean => !STORING.includes(name);
      const kinds = writeKinds('full').toSorted((a, b) => Number(makesRoom(a)) - Number(makesRoom(b)));
      for (const kind of kinds) await place.history.prepare(gateway.url, kind, false);
      await fillDisk(place.mount.path);
      expect(await tried(gateway, place, kinds, 'insufficient_storage')).toEqual(expect.arrayContaining(STORING));
      expect((await get(gateway.url, '/v1/files/v/full/replace.txt')).status).toBe(200);
      await rm(join(place.mount.path, 'ballast'));
      expect(await place.history.writeNext(gateway.url, place.history.attempts)).toEqual([]);
    },
  );

  it('a body that is larger than what is left is cut off in the middle: 507, the old file whole', async () => {
    const place = await smallDisk(mountTmpfs('size=4m'));
    const gateway = await start(place);
    await put(gateway.url, 'v/big.bin', Buffer.alloc(1_048_576, 'o'));
    const refused = await put(gateway.url, 'v/big.bin', Buffer.alloc(8_388_608, 'n'));
    expect([refused.status, refused.json['code']]).toEqual([507, 'insufficient_storage']);
    expect((await readFile(join(place.directory, 'v', 'big.bin'))).equals(Buffer.alloc(1_048_576, 'o'))).toBe(true);
    expect((await put(gateway.url, 'v/big.bin', Buffer.alloc(1_048_576, 'n'))).status).toBe(200);
  });

  it('F29: no inodes left although there is space: 507; deleting makes room', async () => {
    const place = await smallDisk(mountTmpfs('size=8m,nr_inodes=60'));
    const gateway = await start(place);
    expect(await readyVolume(gateway.url)).toMatchObject({ total_bytes: 8_388_608, total_inodes: 60, free_inodes: expect.any(Number) });
    const kinds = writeKinds('few').filter(({ name }) => ['PUT that replaces', 'append', 'range in place', 'DELETE'].includes(name));
    for (const kind of kinds) await place.history.prepare(gateway.url, kind, false);
    const fillers: string[] = [];
    for (let more = true; more; ) {
      const name = join(place.mount.path, `filler-${fillers.length}`);
      more = await writeFile(name, '').then(
        () => true,
        () => false,
      );
      if (more) fillers.push(name);
    }
    expect(
      await tried(
        gateway,
        place,
        kinds.filter(({ name }) => name !== 'DELETE'),
        'insufficient_storage',
      ),
    ).toHaveLength(3);
    expect(codeOf(await patiently(gateway.url, { method: 'PUT', path: '/v1/files/v/few/directory/' }))).toBe('insufficient_storage');
    expect(
      await tried(
        gateway,
        place,
        kinds.filter(({ name }) => name === 'DELETE'),
        '',
      ),
    ).toEqual([]);
    await until(async () => ((await put(gateway.url, 'v/few/replace.txt', 'fits again')).status === 200 ? true : null));
    await Promise.all(fillers.map((name) => rm(name)));
    expect(await place.history.writeNext(gateway.url, place.history.attempts)).toEqual([]);
  });

  it('a PUT for whose parents there are not enough inodes leaves none of them behind', async () => {
    const place = await smallDisk(mountTmpfs('size=8m,nr_inodes=60'));
    const gateway = await start(place);
    await put(gateway.url, 'v/kept/a.txt', 'a');
    const directory = join(place.directory, 'v');
    const free = async (): Promise<number> => Number((await statfs(directory)).ffree);
    for (let left = await free(); left > 7; left -= 1) await writeFile(join(directory, `filler-${left}`), '');
    const [before, freeBefore] = [await readdir(directory), await free()];
    const refused = await put(gateway.url, 'v/kept/d1/d2/d3/d4/d5/d6/d7/d8/d9/f', 'x');
    expect([refused.status, refused.json['code']]).toEqual([507, 'insufficient_storage']);
    expect(await readdir(directory)).toEqual(before);
    expect(await readdir(join(directory, 'kept'))).toEqual(['a.txt']);
    // The staged file goes in the background.
    await until(async () => ((await free()) === freeBefore ? true : null));
    expect((await put(gateway.url, 'v/kept/d1/d2/f', 'fits')).status).toBe(201);
  });

  it.each(FILE_SYSTEMS)(
    'a %s that is remounted read-only: 403 volume_read_only for every kind of write, reads go on; then writes again',
    async (_type, mountOf) => {
      const place = await smallDisk(mountOf(16));
      const gateway = await start(place);
      const kinds = writeKinds('ro');
      for (const kind of kinds) await place.history.prepare(gateway.url, kind, false);
      await place.history.leftovers();
      place.mount.remount('ro');
      expect(await tried(gateway, place, kinds, 'volume_read_only')).toEqual(kinds.map(({ name }) => name));
      place.mount.remount('rw');
      expect(await place.history.writeNext(gateway.url, place.history.attempts)).toEqual([]);
    },
  );
});

describeWhere(cannotMount, 'a journal that cannot be written', () => {
  it('B29: its disk is full: 503 before the volume is touched, for every kind of write and every lease; reads and audit go on; then all is well', async () => {
    const mount = mountTmpfs('size=6m');
    const place = await smallDisk(mountTmpfs('size=16m'));
    onTestFinished(() => mount.unmount());
    const options = {
      environment: { FENCEGATE_DATA_DIR: join(mount.path, 'data'), FENCEGATE_VOLUMES: `v=${place.mount.path}/v,w=${place.mount.path}/w` },
    };
    const gateway = await GatewayProcess.start(place.directory, options);
    const kinds = writeKinds('nojournal');
    for (const kind of kinds) await place.history.prepare(gateway.url, kind, false);
    await place.history.leftovers();
    await fillDisk(mount.path);
    // Room that SQLite had already is used up first.
    await until(async () => ((await put(gateway.url, 'v/first-refused.txt', 'x')).status === 503 ? true : null));
    expect((await get(gateway.url, '/readyz')).json).toMatchObject({
      journal: { healthy: false, reason: expect.stringContaining('its disk is full') },
    });
    const untouched = volumeSnapshot(join(place.directory, 'v'));
    for (const kind of kinds) {
      const answer = await patiently(gateway.url, kind.request);
      expect([kind.name, answer.status, codeOf(answer), answer.headers['retry-after']]).toEqual([
        kind.name,
        503,
        'journal_unavailable',
        expect.any(String),
      ]);
    }
    const refused = await patiently(gateway.url, {
      method: 'POST',
      path: '/v1/leases',
      headers: { 'content-type': 'application/json' },
      body: '{"resource":"v/x"}',
    });
    expect(codeOf(refused)).toBe('journal_unavailable');
    expect(volumeSnapshot(join(place.directory, 'v'))).toEqual(untouched);
    expect((await get(gateway.url, '/v1/files/v/nojournal/replace.txt')).status).toBe(200);
    expect((await get(gateway.url, '/v1/audit?limit=5')).status).toBe(200);
    expect((await get(gateway.url, '/healthz')).status).toBe(200);
    // Room for a record or two is not room for what comes next.
    await truncate(join(mount.path, 'ballast'), (await stat(join(mount.path, 'ballast'))).size - 131_072);
    await until(async () => ((await put(gateway.url, 'v/.fencegate', 'x')).status === 400 ? true : null));
    expect(await get(gateway.url, '/readyz')).toMatchObject({ status: 503, json: { ready: false, journal: { healthy: false } } });
    await rm(join(mount.path, 'ballast'));
    await until(async () => ((await put(gateway.url, 'v/again.txt', 'x')).status === 201 ? true : null));
    expect((await get(gateway.url, '/readyz')).json).toMatchObject({ journal: { healthy: true, reason: null } });
    expect((await get(gateway.url, '/v1/audit/verify')).json).toMatchObject({ valid: true });
    await gateway.kill();
    const again = await GatewayProcess.start(place.directory, options);
    expect((await put(again.url, 'v/again.txt', 'y')).status).toBe(200);
  });

  it('its disk failed: 503 and nothing changed, for as long as the process lives; reads go on', async () => {
    const mount = mountImage('ext4', 32, ['-q']);
    const place = await smallDisk(mountTmpfs('size=16m'));
    onTestFinished(() => mount.unmount());
    const options = { environment: { FENCEGATE_DATA_DIR: join(mount.path, 'data'), FENCEGATE_VOLUMES: `v=${place.mount.path}/v` } };
    const gateway = await GatewayProcess.start(place.directory, options);
    await put(gateway.url, 'v/a.txt', 'before');
    // What the kernel does by itself when such a disk answers with errors: it writes nothing any more.
    mount.remount('abort');
    for (let round = 0; round < 3; round += 1) expect(codeOf(await put(gateway.url, 'v/a.txt', 'refused'))).toBe('journal_unavailable');
    expect((await get(gateway.url, '/v1/files/v/a.txt')).text).toBe('before');
    expect((await get(gateway.url, '/readyz')).json).toMatchObject({
      journal: { healthy: false, reason: expect.stringContaining('until a restart') },
    });
    expect((await get(gateway.url, '/healthz')).status).toBe(200);
    expect(await place.history.leftovers()).toEqual([]);
  });
});

describe('a volume that is not there', () => {
  async function withTwo(): Promise<{ directory: string; volume: string }> {
    const directory = await newDirectory();
    onTestFinished(() => removeDirectory(directory));
    await mkdir(join(directory, 'w'));
    return { directory, volume: join(directory, 'w') };
  }
  const yaml = 'volumes:\n  v:\n    path: "{dir}/v"\n  w:\n    path: "{dir}/w"\n';

  it('vanishes while it is served: 503 with Retry-After for it alone; once it is back it is served by itself', async () => {
    const { directory, volume } = await withTwo();
    const gateway = await GatewayProcess.start(directory, { yaml });
    const before = await put(gateway.url, 'w/a.txt', 'here');
    await rm(volume, { recursive: true });
    const seen = await until(async () => {
      const answer = await put(gateway.url, 'w/a.txt', 'gone');
      return answer.json['code'] === 'volume_unavailable' ? answer : null;
    });
    expect([seen.status, seen.headers['retry-after']]).toEqual([503, expect.any(String)]);
    expect((await send(gateway.url, { method: 'GET', path: '/v1/files/w/a.txt' })).status).toBe(503);
    expect((await put(gateway.url, 'v/a.txt', 'undisturbed')).status).toBe(201);
    expect((await get(gateway.url, '/readyz')).json).toMatchObject({ ready: true });
    await mkdir(volume);
    const after = await until(async () => {
      const answer = await put(gateway.url, 'w/a.txt', 'back');
      return answer.status === 201 ? answer : null;
    });
    expect(BigInt(String(after.headers['x-fencing-token']))).toBeGreaterThan(BigInt(String(before.headers['x-fencing-token'])));
    expect((await readdir(join(volume, '.fencegate'))).filter((name) => /^[0-9a-f]{32}$/.test(name))).toHaveLength(1);
  });

  it('is missing at the start: the others are served, and it joins them when it appears', async () => {
    const { directory, volume } = await withTwo();
    await rm(volume, { recursive: true });
    const gateway = await GatewayProcess.start(directory, { yaml });
    expect((await put(gateway.url, 'v/a.txt', 'served')).status).toBe(201);
    expect(codeOf(await put(gateway.url, 'w/a.txt', 'missing'))).toBe('volume_unavailable');
    await mkdir(volume);
    await until(async () => ((await put(gateway.url, 'w/a.txt', 'joined')).status === 201 ? true : null));
  });
});

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GatewayProcess } from '../support/gateway-process.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { type Attempt, auditOf, History } from '../support/history.ts';
import { get, type HeldLease, lease, post, put, send } from '../support/http-client.ts';
import { until } from '../support/until.ts';
import { quietSnapshot, volumeSnapshot } from '../support/volume-snapshot.ts';
import { TWO_VOLUMES, tokenHeader, type WriteKind, writeKinds } from '../support/write-kinds.ts';

/** Writers that lost their lease: whatever they do, whenever they find out, the file is somebody else's now (I1). */

let directory: string;
let history: History;
let gateway: GatewayProcess;
let rounds = 0;

beforeAll(async () => {
  directory = await newDirectory();
  await mkdir(join(directory, 'w'));
  history = new History(directory);
  gateway = await GatewayProcess.start(directory, { yaml: TWO_VOLUMES, outlivesTest: true });
});
afterAll(async () => {
  await gateway.kill();
  await removeDirectory(directory);
});

const names = writeKinds('names').map(({ name }) => name);

async function leased(name: string): Promise<{ kind: WriteKind; held: HeldLease }> {
  rounds += 1;
  const kind = writeKinds(`r${rounds}`).find((one) => one.name === name);
  if (kind === undefined) throw new Error(`no kind ${name}`);
  const held = await history.prepare(gateway.url, kind, true);
  if (held === null) throw new Error('no lease');
  return { kind, held };
}

function release(held: HeldLease) {
  return send(gateway.url, { method: 'DELETE', path: `/v1/leases/${held.id}` });
}

async function breakAll(kind: WriteKind): Promise<number[]> {
  const answers = [];
  // A lease over several names ends with the first.
  for (const resource of kind.leased.slice(0, 1))
    answers.push((await post(gateway.url, '/v1/admin/locks/break', { resource, reason: 'test', grace_ms: 0 })).status);
  return answers;
}

async function writeLate(kind: WriteKind, held: HeldLease): Promise<Attempt> {
  const late = history.begin(gateway.url, kind, held);
  await late.done;
  return late;
}

describe('R28: a token that another grant made stale', () => {
  it.each(names)('is refused on %s with 412 on its headers, nothing is touched, and the record has the token and the mark it met', async (name) => {
    const { kind, held } = await leased(name);
    await release(held);
    const next = await lease(gateway.url, kind.leased);
    const before = [await quietSnapshot(join(directory, 'v')), await quietSnapshot(join(directory, 'w'))];
    const late = await writeLate(kind, held);
    expect([late.answer?.status, late.answer?.json]).toEqual([
      412,
      expect.objectContaining({ code: 'stale_token', presented_token: held.token, high_water_mark: next.token }),
    ]);
    expect([volumeSnapshot(join(directory, 'v')), volumeSnapshot(join(directory, 'w'))]).toEqual(before);
    expect(await auditOf(gateway.url, `request_id=${late.requestId}`)).toMatchObject([
      { outcome: 'rejected', code: 'stale_token', fencing_token: held.token, high_water_mark: next.token, count: 1 },
    ]);
    expect(await history.check(gateway.url, [late], () => 'before')).toEqual([]);
    await release(next);
  });

  it.each(names)('is refused on %s also when its lease ended and nobody took the lock since', async (name) => {
    const { kind, held } = await leased(name);
    await release(held);
    const late = await writeLate(kind, held);
    expect([late.answer?.status, late.answer?.json['code']]).toEqual([412, 'lease_ended']);
    expect(await history.check(gateway.url, [late], () => 'before')).toEqual([]);
  });
});

describe('a lease that is broken while its write is under way', () => {
  /** All kinds at once, held at a step, each with a lease of its own that is broken there. */
  async function brokenAt(
    step: '3.admit' | '4.staged' | '5.lease' | '6.checked' | '6.before_apply',
  ): Promise<{ attempts: Attempt[]; broken: number[] }> {
    rounds += 1;
    // The names of an upload are known only from its body: it is admitted part by part.
    const kinds = writeKinds(`r${rounds}`).filter(
      ({ name }) => step !== '4.staged' || !['DELETE', 'MOVE', 'MOVE over a file', 'mkdir', 'rmdir'].includes(name),
    );
    const leases = await Promise.all(kinds.map((kind) => history.prepare(gateway.url, kind, true)));
    await gateway.hold(step);
    const before = gateway.held().size;
    const attempts = kinds.map((kind, index) => history.begin(gateway.url, kind, leases[index] ?? null, () => gateway.nudge()));
    await gateway.until(() => gateway.held().size - before === kinds.length);
    const broken = (await Promise.all(kinds.map(breakAll))).flat();
    await gateway.hold(null);
    await Promise.all(attempts.map(({ done }) => done));
    return { attempts, broken };
  }

  it.each(['3.admit', '4.staged', '5.lease'] as const)('before the commit section (%s): 412, nothing changed', async (step) => {
    const { attempts, broken } = await brokenAt(step);
    expect(new Set(broken)).toEqual(new Set([200]));
    const answers = attempts.map(({ kind, answer }) => [kind.name, answer?.status, answer?.json['code']]);
    expect(answers.filter(([, status, code]) => status !== 412 || (code !== 'lease_ended' && code !== 'stale_token'))).toEqual([]);
    expect(await history.check(gateway.url, attempts, () => 'before')).toEqual([]);
  });

  it.each(['6.checked', '6.before_apply'] as const)(
    'within it (%s): the section pins the lease, the write is whole, and the end comes after it',
    async (step) => {
      const { attempts, broken } = await brokenAt(step);
      expect(new Set(broken)).toEqual(new Set([202]));
      expect(attempts.map(({ answer }) => answer?.status).filter((status) => status === undefined || status > 299)).toEqual([]);
      expect(await history.check(gateway.url, attempts, () => 'after')).toEqual([]);
      for (const { kind, lease: held } of attempts) {
        const resource = kind.leased[0] ?? '';
        const lock = await until(async () => {
          const { json } = await get(gateway.url, `/v1/locks/${resource}`);
          return (json['holders'] as unknown[]).length === 0 ? json : null;
        });
        expect(BigInt(String(lock['high_water_mark']))).toBeGreaterThan(BigInt(held?.token ?? 0));
      }
    },
  );
});

describe('a holder that writes without end', () => {
  it('R13: has no write committed after the grant of the next one, though it goes on', async () => {
    const held = await lease(gateway.url, ['v/loop.txt']);
    // Else the break could come before the first write is over, and the next holder would make the file.
    expect((await put(gateway.url, 'v/loop.txt', 'A', tokenHeader(held.token))).status).toBe(201);
    let stopped = false;
    const refused: unknown[] = [];
    const loop = (async () => {
      for (let write = 0; !stopped || refused.length === 0; write += 1) {
        const answer = await put(gateway.url, 'v/loop.txt', `A ${write}`, tokenHeader(held.token));
        if (answer.status > 299) refused.push(answer.json['code']);
      }
    })();
    const waiting = post(gateway.url, '/v1/leases', { resource: 'v/loop.txt', ttl_ms: 60_000, wait_ms: 30_000 });
    await until(async () => ((await get(gateway.url, '/v1/locks/v/loop.txt')).json['queue_length'] === 1 ? true : null));
    await post(gateway.url, '/v1/admin/locks/break', { resource: 'v/loop.txt', reason: 'it is stuck' });
    const next = (await waiting).json;
    expect((await put(gateway.url, 'v/loop.txt', 'B', tokenHeader(String(next['fencing_token'])))).status).toBe(200);
    stopped = true;
    await loop;
    // Between the end of its lease and the next grant it is told that the lease ended, from then on that its token is stale.
    expect(refused.filter((code) => code !== 'lease_ended' && code !== 'stale_token')).toEqual([]);
    expect((await get(gateway.url, '/v1/files/v/loop.txt')).text).toBe('B');
    const records = await auditOf(gateway.url, 'volume=v&path=loop.txt');
    const grant = records.find(({ action, lease_ref: ref }) => action === 'lease_grant' && ref === next['lease_ref']);
    const late = records.filter(
      ({ seq, outcome, fencing_token: token }) => seq > (grant?.seq ?? 0) && outcome === 'committed' && token === held.token,
    );
    expect([grant === undefined, late]).toEqual([false, []]);
  });
});

describe('a pause that is longer than the lease', () => {
  const TTL_MS = 1_000;

  /** Real time, as the clock that leases are judged by counts it. */
  function lapse(): Promise<true> {
    const over = performance.now() + TTL_MS + 200;
    return until(() => (performance.now() > over ? true : null));
  }

  it('R25: of the client: its write is refused when it wakes, a renewal does not bring the lease back, and another gets the lock', async () => {
    const held = await lease(gateway.url, ['v/paused.txt'], TTL_MS);
    await lapse();
    expect((await put(gateway.url, 'v/paused.txt', 'late', tokenHeader(held.token))).json).toMatchObject({ code: 'lease_ended' });
    const renewed = await post(gateway.url, `/v1/leases/${held.id}/renew`, {});
    expect([renewed.status, renewed.json['code']]).toEqual([409, 'lease_not_held']);
    const next = await lease(gateway.url, ['v/paused.txt']);
    expect((await put(gateway.url, 'v/paused.txt', 'late', tokenHeader(held.token))).json).toMatchObject({ code: 'stale_token' });
    expect((await put(gateway.url, 'v/paused.txt', 'next', tokenHeader(next.token))).status).toBe(201);
  });

  it('of the gateway itself: no write that was under way is committed after it, and no request is taken on the old lease', async () => {
    const held = await Promise.all(['one', 'two'].map((name) => lease(gateway.url, [`v/frozen-${name}.txt`], TTL_MS)));
    await gateway.hold('5.lease');
    const before = gateway.held().size;
    const [first, second] = held;
    const running = put(gateway.url, 'v/frozen-one.txt', 'late', tokenHeader(first?.token ?? null));
    await gateway.until(() => gateway.held().size > before);
    gateway.signal('SIGSTOP');
    const asked = put(gateway.url, 'v/frozen-two.txt', 'late', tokenHeader(second?.token ?? null));
    await lapse();
    gateway.order(null);
    gateway.signal('SIGCONT');
    expect([(await running).json['code'], (await asked).json['code']]).toEqual(['lease_ended', 'lease_ended']);
    await gateway.hold(null);
    for (const name of ['one', 'two']) expect((await get(gateway.url, `/v1/files/v/frozen-${name}.txt`)).status).toBe(404);
    expect(await history.leftovers()).toEqual([]);
  });
});

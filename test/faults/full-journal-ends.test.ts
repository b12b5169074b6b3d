import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { fillDisk } from '../support/fill-disk.ts';
import { GatewayProcess, type GatewayProcessOptions } from '../support/gateway-process.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { type Answer, get, type HeldLease, lease, post, put, send } from '../support/http-client.ts';
import { cannotMount, mountTmpfs } from '../support/mounted.ts';
import { describeWhere } from '../support/needs.ts';
import { until } from '../support/until.ts';

/** What is asked of leases while the journal's disk is really full: what is answered is true, and nothing is told that a start could take back. */

interface Full {
  readonly gateway: GatewayProcess;
  readonly options: GatewayProcessOptions;
  readonly held: Readonly<Record<'released' | 'broken' | 'converted' | 'kept' | 'session', HeldLease>>;
  readonly answers: Readonly<Record<'release' | 'break' | 'breakAgain' | 'convert' | 'session', Answer>>;
  makeRoom(): Promise<void>;
}

/** Of each of these leases an end, or a change, was asked for while there was no room. */
async function askedWhileFull(limits: NonNullable<GatewayProcessOptions['limits']>): Promise<Full> {
  const mount = mountTmpfs('size=6m');
  const directory = await newDirectory();
  onTestFinished(async () => {
    mount.unmount();
    await removeDirectory(directory);
  });
  await mkdir(join(directory, 'v'));
  const environment = { FENCEGATE_DATA_DIR: join(mount.path, 'data'), FENCEGATE_VOLUMES: `v=${directory}/v` };
  const gateway = await GatewayProcess.start(directory, { environment, limits });
  const { url } = gateway;
  const take = (name: string): Promise<HeldLease> => lease(url, [`v/${name}`], 600_000);
  const { session_id: sessionId } = (await post(url, '/v1/sessions', { ttl_ms: 600_000 })).json;
  const inSession = (await post(url, '/v1/leases', { resource: 'v/session', session_id: sessionId, ttl_ms: 600_000 })).json;
  const held = {
    released: await take('released'),
    broken: await take('broken'),
    converted: await take('converted'),
    kept: await take('kept'),
    session: { id: String(inSession['lease_id']), ref: String(inSession['lease_ref']), token: String(inSession['fencing_token']) },
  };
  await fillDisk(mount.path);
  // Room that SQLite had already is used up first.
  await until(async () => ((await post(url, '/v1/leases', { resource: `v/used-up-${Math.random()}` })).status === 503 ? true : null));
  const answers = {
    release: await send(url, { method: 'DELETE', path: `/v1/leases/${held.released.id}` }),
    break: await post(url, '/v1/admin/locks/break', { resource: 'v/broken', reason: 'stuck' }),
    breakAgain: await post(url, '/v1/admin/locks/break', { resource: 'v/broken', reason: 'still stuck' }),
    convert: await post(url, `/v1/leases/${held.converted.id}/convert`, { mode: 'shared' }),
    session: await send(url, { method: 'DELETE', path: `/v1/sessions/${String(sessionId)}` }),
  };
  const makeRoom = async (): Promise<void> => {
    await rm(join(mount.path, 'ballast'));
    await until(async () => ((await get(url, '/readyz')).status === 200 ? true : null));
  };
  return { gateway, options: { environment, limits }, held, answers, makeRoom };
}

function write(url: string, name: keyof Full['held'], { token }: HeldLease): Promise<string> {
  return put(url, `v/${name}`, 'x', { 'x-fencing-token': token }).then(({ status, json }) => (status < 300 ? 'written' : String(json['code'])));
}

async function stateOf(url: string, { id }: HeldLease): Promise<unknown[]> {
  const { json } = await get(url, `/v1/leases/${id}`);
  return [json['state'], json['mode']];
}

describeWhere(cannotMount, 'while the disk of the journal is full', () => {
  it('an end is outcome_unknown and says how to ask for it; a change to shared did not happen; and that is what comes of them when there is room', async () => {
    const { gateway, held, answers, makeRoom } = await askedWhileFull({});
    const { url } = gateway;
    expect(Object.entries(answers).map(([what, { status, json }]) => [what, status, json['code']])).toEqual([
      ['release', 503, 'outcome_unknown'],
      ['break', 503, 'outcome_unknown'],
      ['breakAgain', 503, 'outcome_unknown'],
      ['convert', 503, 'journal_unavailable'],
      ['session', 503, 'outcome_unknown'],
    ]);
    expect(answers.release.json).toMatchObject({ lease_id: held.released.id });
    expect(answers.breakAgain.json['operation_id']).toBe(answers.break.json['operation_id']);
    expect((await get(url, '/v1/locks/v/released')).json['holders']).toMatchObject([{ lease_ref: held.released.ref }]);
    const sessions = async () => (await get(url, '/v1/admin/sessions')).json['sessions'] as { session_ref: string; state: string }[];
    const ended = { session_ref: answers.session.json['session_ref'], state: 'ending', expires_in_ms: 0, lease_count: 1 };
    expect(await sessions()).toContainEqual(expect.objectContaining(ended));
    await makeRoom();
    const operation = `/v1/operations/${String(answers.break.json['operation_id'])}`;
    await until(async () => ((await get(url, operation)).json['outcome'] === 'committed' ? true : null));
    await until(async () => ((await sessions()).every(({ state }) => state === 'live') ? true : null));
    expect((await sessions()).map(({ session_ref: ref }) => ref)).not.toContain(ended.session_ref);
    expect(await stateOf(url, held.converted)).toEqual(['held', 'exclusive']);
    expect(await write(url, 'converted', held.converted)).toBe('written');
    const records = (await get(url, '/v1/audit?order=asc')).json['records'] as { action: string; path: string }[];
    const ends = records.filter(({ action }) => ['lease_release', 'lease_break', 'lease_convert'].includes(action));
    expect(ends.map(({ action, path }) => `${action} ${path}`).sort()).toEqual([
      'lease_break broken',
      'lease_release released',
      'lease_release session',
    ]);
  });

  it('nobody is told of an end, not even by a refused write, that a start could take back: whoever was told 412 writes no more after kill -9', async () => {
    // Nothing is tried again by itself, so the writes are the first to ask.
    const { gateway, options, held, makeRoom } = await askedWhileFull({ endRetryMs: 3_600_000 });
    await makeRoom();
    const names = ['released', 'broken', 'session', 'converted', 'kept'] as const;
    const told = [];
    for (const name of names) told.push(await write(gateway.url, name, held[name]));
    expect(told).toEqual(['lease_ended', 'stale_token', 'lease_ended', 'written', 'written']);
    await gateway.kill();
    const again = await GatewayProcess.start(gateway.directory, options);
    const after = [];
    for (const name of names) after.push(await write(again.url, name, held[name]));
    expect(after).toEqual(told);
    expect(await stateOf(again.url, held.broken)).toEqual(['broken', 'exclusive']);
    expect((await get(again.url, '/v1/audit/verify')).json).toMatchObject({ valid: true });
  });

  it('a gateway that is stopped names the ends that it could not store, and the next start says that the disk is full', async () => {
    const { gateway, options, held, answers } = await askedWhileFull({});
    expect((await gateway.stop()).code).toBe(0);
    const line = gateway.log.split('\n').find((text) => text.includes('did not take the ends'));
    const { lease_refs: leases, session_refs: sessions } = JSON.parse(line ?? '{}') as Record<string, string[]>;
    expect(leases).toEqual(expect.arrayContaining([held.released.ref, held.broken.ref, held.session.ref]));
    expect(sessions).toContain(answers.session.json['session_ref']);
    expect(line).not.toContain(held.released.id);
    const failed = await GatewayProcess.failing(gateway.directory, options);
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringMatching(/disk .*is full/)]);
  });

  it('a fix of the doctor is outcome_unknown as often as it is asked for, by one operation, and done when there is room', async () => {
    const { gateway, held, makeRoom } = await askedWhileFull({ heldLongMs: 1 });
    const { url } = gateway;
    const { findings } = (await get(url, '/v1/admin/doctor')).json as { findings: { id: string; evidence: { lease_ref?: string } }[] };
    const finding = findings.find(({ evidence }) => evidence.lease_ref === held.kept.ref);
    const fix = () => post(url, '/v1/admin/doctor/fixes', { finding_id: finding?.id, force: true, reason: 'its host is gone' });
    const [first, second] = [await fix(), await fix()];
    expect([first, second].map(({ status, json }) => `${status} ${String(json['code'])}`)).toEqual(['503 outcome_unknown', '503 outcome_unknown']);
    expect(first.json['operation_id']).toMatch(/^op_/);
    expect(second.json['operation_id']).toBe(first.json['operation_id']);
    await makeRoom();
    expect((await fix()).status).toBe(200);
    expect(await stateOf(url, held.kept)).toEqual(['broken', 'exclusive']);
    expect((await fix()).status).toBe(404);
    const records = (await get(url, '/v1/audit?path=kept&order=asc')).json['records'] as { action: string; outcome: string }[];
    expect(records.map(({ action, outcome }) => `${action} ${outcome}`)).toEqual([
      'lease_grant committed',
      'lease_break committed',
      'doctor_fix committed',
    ]);
  });
});

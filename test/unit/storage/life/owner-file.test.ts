import * as fs from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseOwner } from '../../../../src/storage/life/owner-file.ts';
import { startVolume } from '../../../../src/storage/life/start-volume.ts';
import { FaultCalls, systemError } from '../../../support/fault-calls.ts';
import { LivingVolume } from '../../../support/living-volume.ts';

let living: LivingVolume;
beforeEach(() => {
  living = new LivingVolume();
});
afterEach(() => living.remove());

const ownerFile = (): { owner: string; volume: string } => parseOwner(fs.readFileSync(living.control('owner')));

describe('the owner file', () => {
  it('is made once, and gives the volume a uuid that every later start finds', async () => {
    const first = await living.open();
    const second = await living.open();
    expect(second.volumeUuid).toBe(first.volumeUuid);
    expect(ownerFile()).toEqual({ owner: 'gateway-1', volume: first.volumeUuid });
    expect(fs.readdirSync(living.control()).filter((name) => name.startsWith('owner-'))).toEqual([]);
    await first.close();
    await second.close();
  });

  it('B36: keeps the volume closed for another gateway, names the owner, and touches nothing', async () => {
    await (await living.open()).close();
    const before = fs.readdirSync(living.control());
    const result = await living.start({ owner: 'gateway-2' });
    expect(result).toMatchObject({ kind: 'closed', ownedByAnother: true });
    expect(result.kind === 'closed' && result.reason).toContain('gateway-1');
    expect(fs.readdirSync(living.control())).toEqual(before);
  });

  it('B36: lets exactly one of two gateways win that start at the same time', async () => {
    const [one, two] = await Promise.all([living.start({ owner: 'gateway-1' }), living.start({ owner: 'gateway-2' })]);
    expect([one.kind, two.kind].sort()).toEqual(['closed', 'open']);
    expect(ownerFile().owner).toBe(one.kind === 'open' ? 'gateway-1' : 'gateway-2');
    if (one.kind === 'open') await one.close();
    if (two.kind === 'open') await two.close();
  });

  it('B36: tells the loser whose it is when the start of the winner sweeps what the loser has drafted', async () => {
    const deps = living.deps({ owner: 'gateway-2' });
    for (const before of ['link', 'unlink'] as const) {
      const faults = new FaultCalls(deps.calls);
      if (before === 'unlink') faults.on('link', async () => Promise.reject(systemError('EEXIST', 17)));
      faults.on(before, async (real) => {
        await (await living.open()).close();
        return real();
      });
      expect(await startVolume({ ...deps, calls: faults.calls }, 'plain')).toMatchObject({ kind: 'closed', ownedByAnother: true });
      fs.rmSync(living.control('owner'));
    }
  });

  it.each(['', 'not json', '{}', '{"owner":"","volume":"v"}', '{"owner":7,"volume":"v"}', 'null'])(
    'keeps the volume closed when it says %j',
    async (content) => {
      fs.mkdirSync(living.control());
      fs.writeFileSync(living.control('owner'), content);
      expect(await living.start()).toMatchObject({ kind: 'closed', ownedByAnother: false, findings: [{ code: 'record_damaged' }] });
      expect(living.incarnationDirectories()).toEqual([]);
    },
  );

  it('is taken over by an adoption, which keeps the uuid of the volume', async () => {
    const first = await living.open();
    await first.close();
    const adopted = await living.open({ owner: 'gateway-2', mode: 'adopt' });
    expect(ownerFile()).toEqual({ owner: 'gateway-2', volume: first.volumeUuid });
    await adopted.close();
    expect(await living.start()).toMatchObject({ kind: 'closed', ownedByAnother: true });
  });

  it('is made anew by an adoption when nobody can read it', async () => {
    fs.mkdirSync(living.control());
    fs.writeFileSync(living.control('owner'), 'garbage');
    await (await living.open({ mode: 'adopt' })).close();
    expect(ownerFile().owner).toBe('gateway-1');
  });

  it('survives a kill at every step of the first start', async () => {
    for (let killAt = 1; killAt < 20; killAt += 1) {
      const young = new LivingVolume(killAt);
      await young.start({ killAt }).catch(() => undefined);
      await (await young.open()).close();
      expect(fs.readdirSync(young.control()).filter((name) => name.startsWith('owner-'))).toEqual([]);
      young.remove();
    }
  });
});

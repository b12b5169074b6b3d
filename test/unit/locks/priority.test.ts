import { describe, expect, it } from 'vitest';
import { settle } from '../../support/fake-clock.ts';
import { anybody, LockLab, never, resource } from '../../support/lock-lab.ts';

const [A, B, C] = [resource('a'), resource('b'), resource('c')];

async function session(lab: LockLab): Promise<string> {
  return (await lab.locks.service.createSession(anybody, { ttlMs: 3_600_000, clientId: null })).sessionId;
}

async function order(lab: LockLab, where = A): Promise<(string | null)[]> {
  return (await lab.locks.service.lock(where)).waiters.map(({ clientId }) => clientId);
}

describe('priorities', () => {
  it('reorder waiters only, within the bound of 16 per step', async () => {
    const lab = new LockLab();
    await lab.acquire(A, { priority: 0 });
    for (let i = 0; i < 20; i += 1) await lab.during(lab.acquire(A, { waitMs: 1, clientId: `n${i}`, ttlMs: 3_600_000 }), 5, 1);
    await lab.during(lab.acquire(A, { waitMs: 1, clientId: 'important', priority: 6 }), 5, 1);
    expect((await order(lab)).indexOf('important')).toBe(5);
    await lab.during(lab.acquire(A, { waitMs: 1, clientId: 'urgent', priority: 9 }), 5, 1);
    expect((await order(lab))[0]).toBe('urgent');
    expect((await lab.locks.service.lock(A)).holders[0]?.priority).toBe(0);
  });

  it('starve nobody: the least important is let in after 144 others at most, however many of the most important come', async () => {
    const lab = new LockLab();
    let held = await lab.acquire(A, { priority: 9, ttlMs: 3_600_000 });
    let passed = 0;
    const granted: string[] = [];
    const wait = async (clientId: string, priority: number): Promise<void> => {
      const lease = await lab.acquire(A, { waitMs: null, priority, clientId, ttlMs: 3_600_000 });
      held = lease;
      granted.push(clientId);
    };
    const least = wait('least', 0);
    for (let i = 0; granted.at(-1) !== 'least'; i += 1) {
      expect(passed).toBeLessThanOrEqual(16 * 9);
      void wait(`most ${i}`, 9);
      void wait(`most ${i} too`, 9);
      await settle();
      await lab.release(held.leaseId);
      await settle();
      passed += granted.at(-1) === 'least' ? 0 : 1;
    }
    await least;
    // The bound is one that is reached, by nearly as many.
    expect(passed).toBeGreaterThan(60);
  });

  it('pass to the holder that keeps an important one waiting, along a chain, and back again', async () => {
    const lab = new LockLab();
    const [low, middle] = [await session(lab), await session(lab)];
    await lab.acquire(A, { sessionId: low });
    await lab.acquire(B, { sessionId: middle });
    const onC = await lab.acquire(C);
    // `low` waits for `middle`, which waits at C behind somebody of its own importance.
    await lab.during(lab.acquire(C, { waitMs: 1, clientId: 'before', priority: 4 }), 5, 1);
    await lab.during(lab.acquire(C, { waitMs: 1, clientId: 'middle', sessionId: middle, priority: 4, ttlMs: 3_600_000 }), 5, 1);
    await lab.during(lab.acquire(B, { waitMs: 1, clientId: 'low', sessionId: low, priority: 4, ttlMs: 3_600_000 }), 5, 1);
    expect(await order(lab, C)).toEqual(['before', 'middle']);
    const vip = new AbortController();
    const wait = lab.acquire(A, { waitMs: 60_000, clientId: 'vip', priority: 9 }, anybody, vip.signal);
    wait.catch(() => undefined);
    await settle();
    expect(await order(lab, C)).toEqual(['middle', 'before']);
    vip.abort(new Error('gone'));
    await settle();
    expect(await order(lab, C)).toEqual(['before', 'middle']);
    await lab.release(onC.leaseId);
    await settle();
    expect((await lab.locks.service.lock(C)).holders[0]?.clientId).toBe('before');
  });

  it('a session that waits after others wait for it already stands with their importance', async () => {
    const lab = new LockLab();
    const low = await session(lab);
    await lab.acquire(A, { sessionId: low });
    await lab.acquire(B);
    await lab.during(lab.acquire(A, { waitMs: 1, priority: 9, ttlMs: 3_600_000 }), 5, 1);
    await lab.during(lab.acquire(B, { waitMs: 1, clientId: 'before' }), 5, 1);
    await lab.during(lab.acquire(B, { waitMs: 1, clientId: 'low', sessionId: low }), 5, 1);
    expect(await order(lab, B)).toEqual(['low', 'before']);
  });

  it('of an upgrade pass to the readers that it waits for, with what it inherited itself, and back again when it is given up', async () => {
    const lab = new LockLab();
    const LONG = { ttlMs: 3_600_000 };
    const [reader, upgrader] = [await session(lab), await session(lab)];
    await lab.acquire(A, { mode: 'shared', sessionId: reader, priority: 0, ...LONG });
    const { leaseId } = await lab.acquire(A, { mode: 'shared', sessionId: upgrader, priority: 6, ...LONG });
    await lab.acquire(C, { sessionId: upgrader, priority: 0, ...LONG });
    await lab.acquire(B, LONG);
    await lab.during(lab.acquire(B, { waitMs: 1, clientId: 'before', priority: 5, ...LONG }), 5, 1);
    await lab.during(lab.acquire(B, { waitMs: 1, clientId: 'urgent', priority: 8, ...LONG }), 5, 1);
    await lab.during(lab.acquire(B, { waitMs: 1, clientId: 'reader', priority: 0, sessionId: reader, ...LONG }), 5, 1);
    expect(await order(lab, B)).toEqual(['urgent', 'before', 'reader']);
    const convert = (mode: 'shared' | 'exclusive') => lab.locks.service.convert(anybody, leaseId, mode, never);
    for (const round of ['first', 'again']) {
      await convert('exclusive');
      expect([round, await order(lab, B)]).toEqual([round, ['urgent', 'reader', 'before']]);
      const vip = new AbortController();
      lab.acquire(C, { waitMs: 60_000, priority: 9, ...LONG }, anybody, vip.signal).catch(() => undefined);
      await settle();
      expect([round, await order(lab, B)]).toEqual([round, ['reader', 'urgent', 'before']]);
      vip.abort(new Error('gone'));
      await settle();
      expect([round, await order(lab, B)]).toEqual([round, ['urgent', 'reader', 'before']]);
      await convert('shared');
      expect([round, await order(lab, B)]).toEqual([round, ['urgent', 'before', 'reader']]);
    }
  });

  it('of an upgrade are not what its own session waits with elsewhere', async () => {
    const lab = new LockLab();
    const mine = await session(lab);
    const { leaseId } = await lab.acquire(A, { mode: 'shared', sessionId: mine, priority: 9 });
    await lab.acquire(A, { mode: 'shared', ttlMs: 3_600_000 });
    await lab.acquire(B);
    await lab.during(lab.acquire(B, { waitMs: 1, clientId: 'before' }), 5, 1);
    await lab.during(lab.acquire(B, { waitMs: 1, clientId: 'mine', priority: 0, sessionId: mine, ttlMs: 3_600_000 }), 5, 1);
    await lab.locks.service.convert(anybody, leaseId, 'exclusive', never);
    expect(await order(lab, B)).toEqual(['before', 'mine']);
  });
});

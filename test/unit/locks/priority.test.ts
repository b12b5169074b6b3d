import { describe, expect, it } from 'vitest';
import { settle } from '../../support/fake-clock.ts';
import { anybody, LockLab, resource } from '../../support/lock-lab.ts';

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
});

import { describe, expect, it } from 'vitest';
import type { LeaseMode } from '../../src/domain/lease.ts';
import type { LeaseView } from '../../src/domain/lock-api.ts';
import { endsContract } from './coordinator-ends-contract.ts';
import { sessionsContract } from './coordinator-sessions-contract.ts';
import { settle } from './fake-clock.ts';
import { callerOf, type LockLab, never, resource, tokenOf } from './lock-lab.ts';

const LEDGER = resource('ledger/q3.csv');

/** What every coordinator must do, whatever is behind it. `make` gives a fresh one over a fake clock. */
export function coordinatorContract(name: string, make: () => LockLab): void {
  describe(`the ${name} coordinator`, () => {
    endsContract(make);
    sessionsContract(make);

    it('grants a free resource at once, with a token that is the mark', async () => {
      const lab = make();
      const lease = await lab.acquire(LEDGER);
      expect(lease).toMatchObject({ state: 'held', mode: 'exclusive', holdCount: 1, queuePosition: null, reason: null });
      const lock = await lab.locks.service.lock(LEDGER);
      expect(lock).toMatchObject({ mode: 'exclusive', queueLength: 0, highWaterMark: lease.fencingToken });
      expect(lock.holders.map(({ leaseRef }) => leaseRef)).toEqual([lease.leaseRef]);
    });

    it('answers a try on a held resource with lock_not_acquired and leaves no place behind', async () => {
      const lab = make();
      await lab.acquire(LEDGER, { clientId: 'a' });
      await expect(lab.acquire(LEDGER, { clientId: 'b' })).rejects.toMatchObject({ code: 'lock_not_acquired', members: { holder_client_id: 'a' } });
      expect((await lab.locks.service.lock(LEDGER)).queueLength).toBe(0);
    });

    it('hands over in the order of arrival, with growing tokens', async () => {
      const lab = make();
      let current = await lab.acquire(LEDGER);
      const waiting = await Promise.all(Array.from({ length: 5 }, () => lab.during(lab.acquire(LEDGER, { waitMs: 1 }), 10, 1)));
      expect(waiting.map(({ state, queuePosition }) => [state, queuePosition])).toEqual([1, 2, 3, 4, 5].map((n) => ['waiting', n]));
      for (const next of waiting) {
        await lab.release(current.leaseId);
        const granted = await lab.lease(next.leaseId, 1_000);
        expect(granted.state).toBe('held');
        expect(tokenOf(granted) > tokenOf(current)).toBe(true);
        current = granted;
      }
    });

    it('lets readers share, keeps a writer out, and lets no newer reader pass the waiting writer', async () => {
      const lab = make();
      const first = await lab.acquire(LEDGER, { mode: 'shared' });
      const second = await lab.acquire(LEDGER, { mode: 'shared' });
      const writer = await lab.during(lab.acquire(LEDGER, { waitMs: 1 }), 10, 1);
      const late = await lab.during(lab.acquire(LEDGER, { mode: 'shared', waitMs: 1 }), 10, 1);
      expect([first.state, second.state, writer.state, late.state]).toEqual(['held', 'held', 'waiting', 'waiting']);
      await lab.release(first.leaseId);
      expect((await lab.lease(writer.leaseId)).state).toBe('waiting');
      await lab.release(second.leaseId);
      expect((await lab.lease(writer.leaseId, 100)).state).toBe('held');
      await lab.release(writer.leaseId);
      expect((await lab.lease(late.leaseId, 100)).state).toBe('held');
    });

    it('lets all readers at the head in together', async () => {
      const lab = make();
      const writer = await lab.acquire(LEDGER);
      const readers = await Promise.all([1, 2, 3].map(() => lab.during(lab.acquire(LEDGER, { mode: 'shared', waitMs: 1 }), 10, 1)));
      await lab.release(writer.leaseId);
      await settle();
      for (const reader of readers) expect((await lab.lease(reader.leaseId)).state).toBe('held');
    });

    it('frees what a dead holder held within its time to live, and refuses its late renewal', async () => {
      const lab = make();
      const dead = await lab.acquire(LEDGER, { ttlMs: 5_000 });
      const waiter = lab.acquire(LEDGER, { waitMs: 60_000, ttlMs: 60_000 });
      await lab.clock.advanceAsync(4_999);
      expect((await lab.locks.service.lock(LEDGER)).holders[0]?.leaseRef).toBe(dead.leaseRef);
      await lab.clock.advanceAsync(1);
      expect(await waiter).toMatchObject({ state: 'held' });
      await expect(lab.locks.service.renew(callerOf(null), dead.leaseId)).rejects.toMatchObject({ code: 'lease_not_held' });
      expect(await lab.lease(dead.leaseId)).toMatchObject({ state: 'expired', reason: 'expired' });
    });

    it('takes several resources all or nothing, in one order, under one token', async () => {
      const lab = make();
      const [a, b] = [resource('a'), resource('b')];
      const onB = await lab.acquire(b);
      await expect(lab.acquire([b, a])).rejects.toMatchObject({ code: 'lock_not_acquired' });
      expect((await lab.locks.service.lock(a)).holders).toEqual([]);
      const both = lab.acquire([b, a], { waitMs: 1_000 });
      await settle();
      await lab.release(onB.leaseId);
      const lease = await both;
      for (const where of [a, b]) expect((await lab.locks.service.lock(where)).highWaterMark).toBe(lease.fencingToken);
    });

    it('pins only a live exclusive lease whose token is the mark, and keeps a pinned lease from ending', async () => {
      const lab = make();
      const lease = await lab.acquire(LEDGER, { ttlMs: 5_000 });
      const pin = lab.locks.writeLeases.pin(LEDGER, tokenOf(lease));
      const waiter = lab.acquire(LEDGER, { waitMs: 60_000, ttlMs: 60_000 });
      await lab.clock.advanceAsync(6_000);
      expect((await lab.locks.service.lock(LEDGER)).holders[0]?.leaseRef).toBe(lease.leaseRef);
      expect(() => lab.locks.writeLeases.pin(LEDGER, tokenOf(lease))).toThrowError(expect.objectContaining({ code: 'lease_ended' }));
      pin.leave();
      const next = await waiter;
      expect(tokenOf(next) > tokenOf(lease)).toBe(true);
    });

    it('leaves the queue when the client goes before the answer to its first call', async () => {
      const lab = make();
      await lab.acquire(LEDGER);
      const gone = new AbortController();
      const wait = lab.acquire(LEDGER, { waitMs: 60_000 }, callerOf(null), gone.signal);
      await settle();
      gone.abort(new Error('gone'));
      await expect(wait).rejects.toThrow('gone');
      expect((await lab.locks.service.lock(LEDGER)).queueLength).toBe(0);
    });

    it('keeps the place of a waiter whose poll is cut off', async () => {
      const lab = make();
      const holder = await lab.acquire(LEDGER);
      const waiter = await lab.during(lab.acquire(LEDGER, { waitMs: 1 }), 10, 1);
      const cut = new AbortController();
      const poll = lab.lease(waiter.leaseId, 10_000, callerOf(null), cut.signal);
      cut.abort(new Error('cut'));
      await expect(poll).rejects.toThrow('cut');
      await lab.release(holder.leaseId);
      expect((await lab.locks.service.lease(callerOf(null), waiter.leaseId, 1_000, never)).state).toBe('held');
    });

    it('turns an exclusive lease into a shared one in place: same number, readers come in, a writer waits on, and it writes no more', async () => {
      const lab = make();
      const lease = await lab.acquire(LEDGER);
      const reader = lab.acquire(LEDGER, { mode: 'shared', waitMs: 60_000 });
      await settle();
      const writer = await lab.during(lab.acquire(LEDGER, { waitMs: 1 }), 10, 1);
      const shared = await convert(lab, lease.leaseId, 'shared');
      expect(shared).toMatchObject({ state: 'held', mode: 'shared', fencingToken: lease.fencingToken });
      expect(await reader).toMatchObject({ state: 'held', mode: 'shared' });
      expect((await lab.lease(writer.leaseId)).state).toBe('waiting');
      expect(() => lab.locks.writeLeases.pin(LEDGER, tokenOf(lease))).toThrowError(expect.objectContaining({ code: 'lease_is_shared' }));
    });

    it('turns a shared lease into an exclusive one when the other readers are gone, under a new token; a second upgrader is refused at once', async () => {
      const lab = make();
      const [mine, other] = [await lab.acquire(LEDGER, { mode: 'shared' }), await lab.acquire(LEDGER, { mode: 'shared' })];
      expect(await convert(lab, mine.leaseId, 'exclusive')).toMatchObject({ state: 'held', mode: 'shared' });
      await expect(convert(lab, other.leaseId, 'exclusive')).rejects.toMatchObject({ code: 'upgrade_conflict' });
      await expect(lab.acquire(LEDGER, { mode: 'shared' })).rejects.toMatchObject({ code: 'lock_not_acquired' });
      await lab.release(other.leaseId);
      const upgraded = await lab.lease(mine.leaseId, 1_000);
      expect(upgraded).toMatchObject({ state: 'held', mode: 'exclusive' });
      expect(tokenOf(upgraded) > tokenOf(mine) && tokenOf(upgraded) > tokenOf(other)).toBe(true);
      expect(() => lab.locks.writeLeases.pin(LEDGER, tokenOf(mine))).toThrowError(expect.objectContaining({ code: 'stale_token' }));
    });

    it('serves the more important first among waiters, within its bound, and never takes from a holder', async () => {
      const lab = make();
      const holder = await lab.acquire(LEDGER, { priority: 0 });
      const wait = (priority: number) => lab.during(lab.acquire(LEDGER, { waitMs: 1, ttlMs: 3_600_000, priority }), 10, 1);
      const usual = await wait(5);
      const important = await wait(6);
      expect([important.queuePosition, (await lab.lease(usual.leaseId)).queuePosition]).toEqual([1, 2]);
      expect((await lab.lease(holder.leaseId)).state).toBe('held');
      await lab.release(holder.leaseId);
      expect((await lab.lease(important.leaseId, 1_000)).state).toBe('held');
      expect((await lab.lease(usual.leaseId)).state).toBe('waiting');
    });

    it('holds everybody back for the lock-delay after an unclean end, and not after a clean one', async () => {
      const lab = make();
      await lab.acquire(LEDGER, { ttlMs: 1_000, lockDelayMs: 10_000 });
      await lab.clock.advanceAsync(1_000);
      const waiter = lab.acquire(LEDGER, { waitMs: 60_000, ttlMs: 60_000, lockDelayMs: 10_000 });
      await lab.clock.advanceAsync(9_000);
      expect(await lab.locks.service.lock(LEDGER)).toMatchObject({ holders: [], queueLength: 1 });
      await lab.clock.advanceAsync(1_100);
      const lease = await waiter;
      await lab.release(lease.leaseId);
      expect((await lab.acquire(LEDGER)).state).toBe('held');
    });

    it('ends a lease at its longest hold, however often it is renewed, and fences first', async () => {
      const lab = make();
      const lease = await lab.acquire(LEDGER, { ttlMs: 10_000, maxHoldMs: 15_000 });
      const waiter = lab.acquire(LEDGER, { waitMs: 60_000, ttlMs: 60_000 });
      await lab.clock.advanceAsync(9_000);
      expect((await lab.locks.service.renew(callerOf(null), lease.leaseId)).expiresInMs).toBe(6_000);
      await lab.clock.advanceAsync(6_000);
      // A number that nobody gets lies between.
      expect(tokenOf(await waiter) > tokenOf(lease) + 1n).toBe(true);
      expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'expired', reason: 'max_hold' });
    });
  });
}

function convert(lab: LockLab, leaseId: string, mode: LeaseMode): Promise<LeaseView> {
  return lab.locks.service.convert(callerOf(null), leaseId, mode, never);
}

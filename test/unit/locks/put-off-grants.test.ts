import { describe, expect, it } from 'vitest';
import { LIMITS } from '../../../src/domain/limits.ts';
import { COORDINATORS } from '../../support/coordinators.ts';
import { settle } from '../../support/fake-clock.ts';
import { heard } from '../../support/heard-events.ts';
import { LockLab as EmbeddedLab, resource } from '../../support/lock-lab.ts';

/** A grant that the journal refuses is none of the waiter's doing: it keeps its place, and gets the lock when the journal takes it. */

const A = resource('a');
const patient = { ttlMs: 600_000, waitMs: 1 };

async function waiting(lab: EmbeddedLab, clientId: string, changes: object = {}) {
  const waits = lab.acquire(A, { ...patient, clientId, ...changes });
  await settle();
  await lab.clock.advanceAsync(1);
  return waits;
}

describe.each(COORDINATORS)('a grant to a waiter that the journal refuses ($coordinator)', ({ LockLab }) => {
  it('leaves it first in line, told as one that waits, with the whole line behind it, and is made when the journal takes it', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    const first = await waiting(lab, 'first');
    const second = await waiting(lab, 'second');
    const reader = await waiting(lab, 'reader', { mode: 'shared' });
    const events = await heard(lab);
    lab.journal.failing = true;
    await lab.release(lease.leaseId).catch(() => undefined);
    for (let i = 0; i < 10; i += 1) {
      await lab.clock.advanceAsync(1_000);
      expect(await lab.lease(first.leaseId)).toMatchObject({ state: 'waiting', reason: null, queuePosition: 1, grantedAt: null });
      expect(await lab.lease(second.leaseId)).toMatchObject({ state: 'waiting' });
    }
    const shown = await lab.locks.service.lock(A);
    expect(shown.waiters.map(({ clientId }) => clientId)).toEqual(['first', 'second', 'reader']);
    expect(shown.holders.map(({ leaseRef }) => leaseRef)).toEqual([lease.leaseRef]);
    lab.journal.failing = false;
    await lab.clock.advanceAsync(LIMITS.grantRetryMs);
    expect(await lab.lease(first.leaseId)).toMatchObject({ state: 'held', expiresInMs: expect.any(Number) });
    await lab.release(first.leaseId);
    expect(await lab.lease(second.leaseId, 1_000)).toMatchObject({ state: 'held' });
    await lab.release(second.leaseId);
    expect(await lab.lease(reader.leaseId, 1_000)).toMatchObject({ state: 'held' });
    expect(events.map(({ type, clientId }) => `${type} ${clientId}`)).toEqual([
      'released null',
      'granted first',
      'released first',
      'granted second',
      'released second',
      'granted reader',
    ]);
    expect(lab.journal.decisions()).toEqual([
      'lease_grant',
      'lease_release',
      'lease_grant',
      'lease_release',
      'lease_grant',
      'lease_release',
      'lease_grant',
    ]);
  });

  it('answers a request that has waited when its own time is up: still waiting', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    const waiter = lab.acquire(A, { ttlMs: 600_000, waitMs: 5_000 });
    await settle();
    lab.journal.failing = true;
    await lab.release(lease.leaseId).catch(() => undefined);
    expect(await lab.during(waiter, 6_000)).toMatchObject({ state: 'waiting' });
  });

  it('is still cancelled, expired, and ended by its longest wait, each with its record and its event', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    const events = await heard(lab);
    const cancelled = await waiting(lab, 'cancelled');
    await waiting(lab, 'expired', { ttlMs: 5_000 });
    await waiting(lab, 'bored', { maxWaitMs: 8_000 });
    const last = await waiting(lab, 'last');
    lab.journal.failing = true;
    await lab.release(lease.leaseId).catch(() => undefined);
    await lab.clock.advanceAsync(2_000);
    await lab.release(cancelled.leaseId).catch(() => undefined);
    await lab.clock.advanceAsync(10_000);
    lab.journal.failing = false;
    await lab.clock.advanceAsync(2_000);
    expect(await lab.lease(last.leaseId)).toMatchObject({ state: 'held' });
    expect(lab.journal.records.map(({ action, clientId }) => [action, clientId])).toEqual(
      expect.arrayContaining([
        ['lease_cancel', 'cancelled'],
        ['lease_expire', 'expired'],
        ['lease_cancel', 'bored'],
        ['lease_grant', 'last'],
      ]),
    );
    expect(events.map(({ type, clientId }) => `${type} ${clientId}`)).toEqual(
      expect.arrayContaining(['cancelled cancelled', 'expired expired', 'cancelled bored', 'granted last']),
    );
  });

  it('ends with the gateway, and is lost with a record', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    const waiter = await waiting(lab, 'waiter');
    lab.journal.failing = 2;
    await lab.release(lease.leaseId).catch(() => undefined);
    await settle();
    lab.journal.failing = false;
    await lab.locks.endAll('shutdown', null);
    expect(await lab.lease(waiter.leaseId)).toMatchObject({ state: 'lost', reason: 'lost' });
    expect(lab.journal.decisions().filter((word) => word.startsWith('lease_lose'))).toEqual(['lease_lose']);
    lab.locks.stop();
  });
});

describe('a grant that cannot be made at all', () => {
  it('ends the wait as lost, with the code, a record and an event, and the next one gets in', async () => {
    const lab = new EmbeddedLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    const events = await heard(lab);
    const first = await waiting(lab, 'first');
    const second = await waiting(lab, 'second');
    lab.reserveGate = async () => {
      lab.reserveGate = async () => undefined;
      throw new RangeError('beyond the last number');
    };
    await lab.release(lease.leaseId);
    expect(await lab.lease(first.leaseId, 1_000)).toMatchObject({ state: 'lost', reason: 'internal' });
    expect(await lab.lease(second.leaseId, 1_000)).toMatchObject({ state: 'held' });
    expect(lab.journal.decisions()).toEqual(['lease_grant', 'lease_release', 'lease_lose:internal', 'lease_grant']);
    expect(events.map(({ type, clientId }) => `${type} ${clientId}`)).toContain('lost first');
  });

  it('is told to a new request at once, which stands in no line', async () => {
    const lab = new EmbeddedLab();
    lab.journal.failing = true;
    await expect(lab.acquire(A, { waitMs: 10_000 })).rejects.toMatchObject({ code: 'journal_unavailable' });
    await expect(lab.acquire(A)).rejects.toMatchObject({ code: 'journal_unavailable' });
    lab.journal.failing = false;
    expect(await lab.acquire(A)).toMatchObject({ state: 'held' });
  });
});

import { describe, expect, it } from 'vitest';
import { LIMITS } from '../../../src/domain/limits.ts';
import { COORDINATORS } from '../../support/coordinators.ts';
import { anybody, callerOf, resource } from '../../support/lock-lab.ts';

const A = resource('a');

describe.each(COORDINATORS)('bounds ($coordinator)', ({ LockLab }) => {
  it('R15: a time to live outside the bounds is refused with the bounds, never clamped', async () => {
    const lab = new LockLab({ policy: { lease: { ttlMsMin: 5_000, ttlMsMax: 60_000 } } });
    for (const ttlMs of [0, 1, 4_999, 60_001, 1.5, Number.NaN]) {
      await expect(lab.acquire(A, { ttlMs })).rejects.toMatchObject({ code: 'ttl_out_of_range', members: { min_ms: 5_000, max_ms: 60_000 } });
    }
    expect((await lab.acquire(A, { ttlMs: 5_000 })).ttlMs).toBe(5_000);
    await expect(lab.locks.service.createSession(anybody, { ttlMs: 10, clientId: null })).rejects.toMatchObject({
      code: 'ttl_out_of_range',
      members: { min_ms: 1_000, max_ms: 3_600_000 },
    });
  });

  it('R32: a lease without an end in sight needs a volume that allows it', async () => {
    await expect(new LockLab().acquire(A, { ttlMs: 86_400_000 })).rejects.toMatchObject({ code: 'ttl_out_of_range' });
    expect((await new LockLab({ policy: { lease: { infinite: true } } }).acquire(A, { ttlMs: LIMITS.leaseTtlMsUnbounded })).state).toBe('held');
  });

  it('name the field and its bounds', async () => {
    const lab = new LockLab({ policy: { lease: { maxHoldMs: 10_000 } } });
    const cases = [
      [{ waitMs: 60_001 }, { field: 'wait_ms', min_ms: 0, max_ms: 60_000 }],
      [{ waitMs: -1 }, { field: 'wait_ms' }],
      [{ priority: 10 }, { field: 'priority', min: 0, max: 9 }],
      [{ maxHoldMs: 10_001 }, { field: 'max_hold_ms', max_ms: 10_000 }],
      [{ maxHoldMs: 999 }, { field: 'max_hold_ms', min_ms: 1_000 }],
      [{ lockDelayMs: -5 }, { field: 'lock_delay_ms' }],
      [{ maxWaitMs: 0 }, { field: 'max_wait_ms' }],
      [{ holdId: 'x'.repeat(300) }, { field: 'hold_id' }],
      [{ metadata: { x: 'x'.repeat(5_000) } }, { field: 'metadata' }],
    ] as const;
    for (const [changes, members] of cases) await expect(lab.acquire(A, changes)).rejects.toMatchObject({ code: 'invalid_request', members });
    await expect(lab.acquire([])).rejects.toMatchObject({ code: 'invalid_request' });
    await expect(lab.acquire([A, A])).rejects.toMatchObject({ code: 'invalid_request' });
    expect(lab.journal.decisions().every((decision) => decision === 'lease_refuse:invalid_request')).toBe(true);
  });

  it('keep a line within its length, and its volume may make that shorter', async () => {
    const lab = new LockLab({ policy: { limits: { queueLength: 3 } } });
    await lab.acquire(A);
    for (let i = 0; i < 3; i += 1) await lab.during(lab.acquire(A, { waitMs: 1 }), 10, 1);
    await expect(lab.acquire(A, { waitMs: 1_000 })).rejects.toMatchObject({ code: 'queue_full', members: { queue_max: 3 } });
    expect((await lab.locks.service.lock(A)).queueLength).toBe(3);
  });

  it('do not concern a try, which stands in no line: it is refused for what is held, with everybody before it counted', async () => {
    const lab = new LockLab({ policy: { limits: { queueLength: 2 } } });
    const held = await lab.acquire(A, { clientId: 'holder' });
    for (let i = 0; i < 2; i += 1) await lab.during(lab.acquire(A, { waitMs: 1 }), 10, 1);
    const refused = { code: 'lock_not_acquired', members: { holder_client_id: 'holder', holder_lease_ref: held.leaseRef, queue_length: 2 } };
    await expect(lab.acquire(A)).rejects.toMatchObject(refused);
    // Further on, too: what it had taken before is free again.
    const before = resource('0');
    await expect(lab.acquire([before, A])).rejects.toMatchObject({ ...refused, members: { ...refused.members, resource: A.name } });
    expect((await lab.locks.service.lock(before)).holders).toEqual([]);
    expect(lab.journal.decisions().slice(-2)).toEqual(['lease_refuse:lock_not_acquired', 'lease_refuse:lock_not_acquired']);
  });

  it("refuse an unknown session, an ended one, and somebody else's", async () => {
    const lab = new LockLab();
    await expect(lab.acquire(A, { sessionId: 's.unknown' })).rejects.toMatchObject({ code: 'session_not_found' });
    const session = await lab.locks.service.createSession(callerOf('ann'), { ttlMs: null, clientId: null });
    await expect(lab.acquire(A, { sessionId: session.sessionId }, callerOf('bob'))).rejects.toMatchObject({ code: 'forbidden' });
    await lab.locks.service.endSession(callerOf('ann'), session.sessionId);
    await expect(lab.acquire(A, { sessionId: session.sessionId }, callerOf('ann'))).rejects.toMatchObject({ code: 'session_ended' });
  });

  it('answer a wait of an unknown length of poll with the bounds', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    await expect(lab.lease(lease.leaseId, 60_001)).rejects.toMatchObject({ code: 'invalid_request', members: { field: 'wait_ms', max_ms: 60_000 } });
  });
});

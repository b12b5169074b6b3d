import { describe, expect, it } from 'vitest';
import { deadlocks, heldLong, leftBehind, longQueues } from '../../../src/doctor/lock-findings.ts';
import type { LeaseCondition } from '../../../src/domain/administration.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { anybody, callerOf, LockLab, resource, tokenOf } from '../../support/lock-lab.ts';

const A = resource('a');
const B = resource('b');
const admin = callerOf('root', 'operator', ['admin']);
const HOUR = 3_600_000;

/** A clock whose timers come late, as after a suspend: time has passed, and nobody was told. */
class LateClock extends FakeClock {
  lateMs = 0;
  override monotonicMs(): number {
    return super.monotonicMs() + this.lateMs;
  }
}

const condition = (changes: Partial<LeaseCondition>): LeaseCondition => ({
  leaseRef: 'ref',
  clientId: 'batch-7',
  principal: 'anonymous',
  resources: [A],
  state: 'held',
  sessionRef: 's',
  ageMs: LIMITS.heldLongMs,
  silentMs: 1_000,
  ttlMs: 30_000,
  gone: null,
  ...changes,
});
const ended: string[] = [];
const endLease = async (_caller: unknown, leaseRef: string, reason: string | null): Promise<'ended' | 'pending'> => {
  ended.push(reason === null ? leaseRef : `${leaseRef}: ${reason}`);
  return 'ended';
};

describe('a lease held for longer than five minutes', () => {
  it('R32: is found with its age and owner, at five minutes and not before; of a holder that may be alive there is no fix but the call that breaks it', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: HOUR, clientId: 'batch-7' });
    const look = () => heldLong([...lab.locks.conditions()], lab.locks.endLease);
    lab.clock.advance(LIMITS.heldLongMs - 1);
    expect(look()).toEqual([]);
    lab.clock.advance(1);
    const [found] = look();
    expect(found?.finding).toMatchObject({
      code: 'held_long',
      severity: 'warning',
      resource: 'vol/a',
      fix: null,
      evidence: {
        lease_ref: lease.leaseRef,
        client_id: 'batch-7',
        state: 'held',
        held_ms: LIMITS.heldLongMs,
        silent_ms: LIMITS.heldLongMs,
        ttl_ms: HOUR,
        gone: null,
        needs_force: true,
        how: expect.stringContaining(`POST /v1/admin/locks/break {"resource":"vol/a","lease_refs":["${lease.leaseRef}"]`),
      },
    });
    expect(found?.remedy).toBeNull();
    expect(found?.finding.evidence['how']).toContain(`{"finding_id":"${found?.finding.id}","force":true,`);
    await expect(lab.locks.endLease(admin, lease.leaseRef, null)).rejects.toMatchObject({ code: 'not_found' });
    expect((await lab.lease(lease.leaseId)).state).toBe('held');
  });

  it('of a holder that is proven gone is ended by its fix', async () => {
    const [found] = heldLong([condition({ gone: 'silent' })], endLease);
    expect(found?.finding).toMatchObject({ fix: expect.stringContaining('Fence'), evidence: { needs_force: false } });
    expect(found?.remedy?.steps).toEqual([
      expect.stringContaining('prove again'),
      expect.stringContaining('raise the mark of vol/a'),
      'end lease ref as broken',
    ]);
    expect(await found?.remedy?.carryOut(admin)).toEqual([expect.stringContaining('raise the mark'), 'end lease ref as broken']);
    expect(ended).toEqual(['ref']);
  });

  it('of a holder that may be alive is ended by force, for a reason: fenced first, and recorded with what it had written', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: HOUR });
    lab.clock.advance(LIMITS.heldLongMs);
    const [found] = heldLong([...lab.locks.conditions()], lab.locks.endLease);
    const remedy = found?.forced?.('host is down');
    expect(remedy?.steps).toEqual([expect.stringContaining('raise the mark of vol/a'), expect.stringContaining('although its client may be alive')]);
    expect(await remedy?.carryOut(admin)).toHaveLength(2);
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'broken', reason: 'broken' });
    const record = lab.journal.records.find(({ action }) => action === 'lease_break');
    expect(record).toMatchObject({
      outcome: 'committed',
      principal: 'root',
      leaseRef: lease.leaseRef,
      detail: '{"reason":"host is down","committed":[],"committed_truncated":false}',
    });
    expect(record?.highWaterMark).toBeGreaterThan(tokenOf(lease));
    await expect(remedy?.carryOut(admin)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('whose end is decided has no fix: it waits for the write that it carries', () => {
    const [found] = heldLong([condition({ state: 'ending', gone: 'silent' })], endLease);
    expect([found?.remedy, found?.forced]).toEqual([null, null]);
    const [stuck] = heldLong([condition({ state: 'ending', gone: null })], endLease);
    expect([stuck?.remedy, stuck?.forced]).toEqual([null, null]);
    for (const one of [found, stuck])
      expect(one?.finding.evidence).toMatchObject({ needs_force: false, how: expect.stringContaining('Its end is decided') });
  });

  it('shows each lease once, longest first, and a bounded number of them', () => {
    const many = Array.from({ length: LIMITS.doctorFindingsMax + 5 }, (_, i) => condition({ leaseRef: `r${i}`, ageMs: LIMITS.heldLongMs + i }));
    const found = heldLong(many, endLease);
    expect(found).toHaveLength(LIMITS.doctorFindingsMax);
    expect(found[0]?.finding.evidence['lease_ref']).toBe(`r${LIMITS.doctorFindingsMax + 4}`);
    expect(new Set(found.map(({ finding }) => finding.id)).size).toBe(found.length);
  });
});

describe('a client that is proven gone', () => {
  it('leaves nothing behind, however late the timers come', async () => {
    const clock = new LateClock();
    const lab = new LockLab({ clock });
    const lease = await lab.acquire(A, { ttlMs: 30_000 });
    await lab.during(lab.acquire(A, { waitMs: 1, ttlMs: 20_000 }), 5, 1);
    clock.lateMs = 60_000;
    expect(leftBehind([...lab.locks.conditions()], lab.locks.endLease)).toEqual([]);
    expect([...lab.locks.conditions()]).toEqual([]);
    await expect(lab.locks.endLease(admin, lease.leaseRef, null)).rejects.toMatchObject({ code: 'not_found' });
    expect((await lab.lease(lease.leaseId)).state).toBe('expired');
  });

  it('in line without a session, or still holding, would be an error, and its fix takes it out', async () => {
    const found = leftBehind(
      [
        condition({ state: 'waiting', gone: 'session_ended', ageMs: 5 }),
        condition({ leaseRef: 'two', gone: 'silent', ageMs: 5 }),
        condition({ gone: null }),
      ],
      endLease,
    );
    expect(found.map(({ finding: { code, severity, fix } }) => [code, severity, fix])).toEqual([
      ['contender_orphaned', 'error', 'Take it out of the line.'],
      ['holder_gone', 'error', expect.stringContaining('Fence')],
    ]);
    expect(await found[0]?.remedy?.carryOut(admin)).toEqual(['take lease ref out of the line']);
  });

  it('pinned by a commit section loses its lease when that leaves, and its end is told as pending', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 10_000 });
    const pin = lab.locks.writeLeases.pin(A, tokenOf(lease));
    lab.clock.advance(10_000);
    expect([...lab.locks.conditions()]).toMatchObject([{ state: 'ending', gone: 'silent', silentMs: 10_000 }]);
    expect(await lab.during(lab.locks.endLease(admin, lease.leaseRef, null), 5_000)).toBe('pending');
    pin.leave();
    expect((await lab.lease(lease.leaseId)).state).toBe('expired');
  });
});

describe('a long queue', () => {
  it('is found above 100', async () => {
    const lab = new LockLab();
    await lab.acquire(A, { ttlMs: HOUR });
    const joined = Array.from({ length: LIMITS.queueLong }, () => lab.acquire(A, { waitMs: 1, ttlMs: HOUR }));
    await lab.during(Promise.all(joined), 10, 1);
    const locks = async () => (await lab.locks.service.locks({ limit: 10, cursor: null })).locks;
    expect(longQueues(await locks())).toEqual([]);
    await lab.during(lab.acquire(A, { waitMs: 1, ttlMs: HOUR }), 10, 1);
    expect(longQueues(await locks()).map(({ finding }) => [finding.code, finding.evidence['queue_length']])).toEqual([['queue_long', 101]]);
  });
});

describe('a deadlock', () => {
  it('that the lock service breaks by itself is not reported', async () => {
    const lab = new LockLab();
    const [one, two] = [
      await lab.locks.service.createSession(anybody, { ttlMs: null, clientId: 'one' }),
      await lab.locks.service.createSession(anybody, { ttlMs: null, clientId: 'two' }),
    ];
    await lab.acquire(A, { sessionId: one.sessionId });
    await lab.acquire(B, { sessionId: two.sessionId });
    const first = lab.acquire(B, { sessionId: one.sessionId, waitMs: 10_000 });
    const second = lab.acquire(A, { sessionId: two.sessionId, waitMs: 10_000 });
    second.catch(() => undefined);
    expect(lab.locks.waitFor()).toHaveLength(2);
    expect(deadlocks(lab.locks.waitFor(), [...lab.locks.conditions()])).toEqual([]);
    await expect(lab.during(second, 1_000)).rejects.toMatchObject({ code: 'deadlock' });
    expect(deadlocks(lab.locks.waitFor(), [...lab.locks.conditions()])).toEqual([]);
    first.catch(() => undefined);
  });

  it('that stands is found once, over sessions, with the whole cycle', () => {
    const conditions = [
      condition({ leaseRef: 'h1', sessionRef: 's1' }),
      condition({ leaseRef: 'h2', sessionRef: 's2', resources: [B] }),
      condition({ leaseRef: 'w1', sessionRef: 's1', resources: [B], state: 'waiting', clientId: 'one' }),
      condition({ leaseRef: 'w2', sessionRef: 's2', state: 'waiting', clientId: 'two' }),
      condition({ leaseRef: 'w3', sessionRef: 's3', state: 'waiting' }),
    ];
    const edges = [
      { waiterLeaseRef: 'w1', holderLeaseRef: 'h2', resource: 'vol/b' },
      { waiterLeaseRef: 'w2', holderLeaseRef: 'h1', resource: 'vol/a' },
      { waiterLeaseRef: 'w3', holderLeaseRef: 'h1', resource: 'vol/a' },
    ];
    const found = deadlocks(edges, conditions);
    expect(found.map(({ finding }) => finding)).toMatchObject([
      {
        code: 'deadlock',
        severity: 'error',
        fix: null,
        evidence: {
          cycle: [
            { lease_ref: 'w1', client_id: 'one', waits_for: 'vol/b' },
            { lease_ref: 'w2', client_id: 'two', waits_for: 'vol/a' },
          ],
        },
      },
    ]);
  });
});

import { describe, expect, it } from 'vitest';
import { LIMITS } from '../../../src/domain/limits.ts';
import { sessionRefOf } from '../../../src/locks/secret-id.ts';
import { anybody, callerOf, LockLab, resource } from '../../support/lock-lab.ts';

/** A refused call about a session is a decision like any other: its record is durable before its answer (I4). */

const ann = callerOf('ann', 'shop');
const bob = callerOf('bob', 'till');

async function ended(lab: LockLab): Promise<string> {
  const { sessionId } = await lab.locks.service.createSession(ann, { ttlMs: 60_000, clientId: null });
  await lab.locks.service.endSession(ann, sessionId);
  return sessionId;
}

async function live(lab: LockLab): Promise<string> {
  return (await lab.locks.service.createSession(ann, { ttlMs: 60_000, clientId: null })).sessionId;
}

const never = async (): Promise<string> => 's.never';

describe('a refused call about a session', () => {
  it.each([
    ['a session with a time to live out of bounds', 'ttl_out_of_range', 400, never, (lab: LockLab) => make(lab, 999)],
    ['a heartbeat of an unknown session', 'session_not_found', 404, never, beat],
    ['a heartbeat of one that has ended', 'session_ended', 409, ended, beat],
    ["a heartbeat of somebody else's", 'forbidden', 403, live, (lab: LockLab, id: string) => beat(lab, id, bob)],
    ['the end of an unknown session', 'session_not_found', 404, never, end],
    ["the end of somebody else's", 'forbidden', 403, live, (lab: LockLab, id: string) => end(lab, id, bob)],
    ["the end of somebody else's that has ended", 'forbidden', 403, ended, (lab: LockLab, id: string) => end(lab, id, bob)],
  ] as const)('%s is in the audit log before it is answered', async (_, code, status, session, ask) => {
    const lab = new LockLab();
    const sessionId = await session(lab);
    const { principal, clientId, requestId } = code === 'forbidden' ? bob : ann;
    lab.journal.hold();
    let answered = false;
    const asked = ask(lab, sessionId).catch((thrown: unknown) => {
      answered = true;
      return thrown;
    });
    await lab.clock.advanceAsync(100);
    expect(answered).toBe(false);
    lab.journal.release();
    expect(await asked).toMatchObject({ code });
    expect(lab.journal.records.at(-1)).toMatchObject({ action: 'lease_refuse', outcome: 'rejected', code, status, clientId, requestId });
    expect(lab.journal.records.at(-1)).toMatchObject({ principal: principal.name, volume: null, path: null, leaseRef: null });
    expect(JSON.stringify(lab.journal.records)).not.toContain(sessionRefOf(sessionId));
  });

  it('one session too many is in it, too', async () => {
    const lab = new LockLab();
    const many = LIMITS.sessionsPerPrincipalMax;
    Object.assign(LIMITS, { sessionsPerPrincipalMax: 1 });
    try {
      await live(lab);
      await expect(make(lab, 60_000)).rejects.toMatchObject({ code: 'too_many_sessions' });
    } finally {
      Object.assign(LIMITS, { sessionsPerPrincipalMax: many });
    }
    expect(lab.journal.decisions()).toEqual(['lease_refuse:too_many_sessions']);
  });

  it('none: the end of a session that had ended, or a heartbeat that must come later', async () => {
    const lab = new LockLab();
    await end(lab, await ended(lab));
    expect(lab.journal.records).toEqual([]);
    // Whoever makes leases in a session is refused with the name of the resource, once.
    await expect(lab.acquire(resource('a'), { sessionId: 's.never' }, ann)).rejects.toMatchObject({ code: 'session_not_found' });
    expect(lab.journal.records).toMatchObject([{ action: 'lease_refuse', code: 'session_not_found', path: 'a' }]);
  });

  it('is not answered with its refusal when the journal has no record of it', async () => {
    const lab = new LockLab();
    lab.journal.failing = true;
    await expect(beat(lab, 's.never', anybody)).rejects.toMatchObject({ code: 'journal_unavailable' });
  });
});

describe('a heartbeat', () => {
  it('of a session that is gone holds up nobody in its batch when the journal is slow: it is to be sent again', async () => {
    const lab = new LockLab();
    const [mine, gone] = [await live(lab), 's.never'];
    lab.journal.hold();
    const batch = Promise.allSettled([beat(lab, mine), beat(lab, gone), beat(lab, gone)]);
    const [first, ...others] = await lab.during(batch, LIMITS.endsAwaitedMs, 50);
    expect(first).toMatchObject({ status: 'fulfilled', value: { lost: [] } });
    expect(others).toMatchObject(others.map(() => ({ reason: { code: 'journal_unavailable', retryAfterMs: expect.any(Number) } })));
    lab.journal.release();
    await expect(beat(lab, gone)).rejects.toMatchObject({ code: 'session_not_found' });
  });
});

function make(lab: LockLab, ttlMs: number): Promise<unknown> {
  return lab.locks.service.createSession(ann, { ttlMs, clientId: null });
}

function beat(lab: LockLab, sessionId: string, caller = ann): Promise<unknown> {
  return lab.locks.service.heartbeat(caller, sessionId);
}

function end(lab: LockLab, sessionId: string, caller = ann): Promise<unknown> {
  return lab.locks.service.endSession(caller, sessionId);
}

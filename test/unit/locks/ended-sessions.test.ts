import { describe, expect, it } from 'vitest';
import { anybody, callerOf, LockLab, never, resource } from '../../support/lock-lab.ts';

const A = resource('a');
const ann = callerOf('ann');
const bob = callerOf('bob');
const root = callerOf('root', null, ['admin']);

/** Everything that names a session, and what it is answered with. */
const ASKED = [
  ['a heartbeat', (lab: LockLab, sessionId: string, caller = anybody) => lab.locks.service.heartbeat(caller, sessionId)],
  ['an acquire', (lab: LockLab, sessionId: string, caller = anybody) => lab.acquire(A, { sessionId }, caller)],
  ['a watch', (lab: LockLab, sessionId: string, caller = anybody) => lab.locks.events.watch(caller, { of: 'session', sessionId }, null, never)],
] as const;

describe('a session that has ended', () => {
  it.each(ASKED)('is session_ended to %s, before a restart and after it; one that never was is not found', async (_, ask) => {
    const lab = new LockLab();
    const session = await lab.locks.service.createSession(anybody, { ttlMs: 60_000, clientId: null });
    await lab.locks.service.endSession(anybody, session.sessionId);
    await expect(ask(lab, session.sessionId)).rejects.toMatchObject({ code: 'session_ended' });
    const after = await lab.restarted();
    await expect(ask(after, session.sessionId)).rejects.toMatchObject({ code: 'session_ended' });
    await expect(ask(after, 'never')).rejects.toMatchObject({ code: 'session_not_found' });
    await expect(after.locks.service.endSessionByRef(root, session.sessionRef)).rejects.toMatchObject({ code: 'session_ended' });
  });

  it.each(ASKED)('is forbidden to %s of somebody else, before a restart and after it', async (_, ask) => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(ann, { ttlMs: 60_000, clientId: null });
    await lab.locks.service.endSession(ann, sessionId);
    await expect(ask(lab, sessionId, bob)).rejects.toMatchObject({ code: 'forbidden' });
    await expect(ask(await lab.restarted(), sessionId, bob)).rejects.toMatchObject({ code: 'forbidden' });
  });
});

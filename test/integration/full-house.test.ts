import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import type { StoredLease, StoredSession } from '../../src/domain/journal.ts';
import { GatewayProcess } from '../support/gateway-process.ts';
import { newDirectory } from '../support/gateway-settings.ts';
import { type Answer, send } from '../support/http-client.ts';
import { TIER } from '../support/tier.ts';

/**
 * A principal with as many sessions, a session with as many leases, as there may be. Making them by requests would take minutes, so
 * the gateway is killed and finds them in its journal when it comes back: clones of a lease and a session that it made itself.
 */

const FULL = TIER.fullHouse;

const postJson = (url: string, path: string, body: object): Promise<Answer> =>
  send(url, { method: 'POST', path, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
const codeOf = (answer: Answer): string => (answer.status < 300 ? String(answer.status) : `${answer.status} ${String(answer.json['code'])}`);

function cloneUntilFull(file: string): void {
  const db = new Database(file, { fileMustExist: true });
  try {
    const bodyOf = <T>(table: 'leases' | 'sessions'): T => JSON.parse((db.prepare(`SELECT body FROM ${table}`).get() as { body: string }).body) as T;
    const lease = bodyOf<StoredLease>('leases');
    const session = bodyOf<StoredSession>('sessions');
    const putLease = db.prepare('INSERT INTO leases (lease_ref, body) VALUES (?, ?)');
    const putSession = db.prepare('INSERT INTO sessions (session_ref, body) VALUES (?, ?)');
    db.transaction(() => {
      for (let i = 1; i < FULL.leasesPerSessionMax; i++) {
        const leaseRef = `clone-${i}`;
        const resources = lease.resources.map((own) => ({ ...own, path: `p${i}`, name: `v/p${i}`, key: `v/p${i}` }));
        putLease.run(leaseRef, JSON.stringify({ ...lease, leaseId: leaseRef, leaseRef, resources }));
      }
      for (let i = 1; i < FULL.sessionsPerPrincipalMax; i++) {
        const sessionRef = `clone-${i}`;
        putSession.run(sessionRef, JSON.stringify({ ...session, sessionId: sessionRef, sessionRef }));
      }
    })();
  } finally {
    db.close();
  }
}

describe('a full house', () => {
  it('one session more, one lease more, and one made by the way are 429; when one leaves there is room for one', async () => {
    const directory = await newDirectory();
    const first = await GatewayProcess.start(directory, { limits: FULL });
    const { json: made } = await postJson(first.url, '/v1/sessions', { ttl_ms: 600_000 });
    const sessionId = String(made['session_id']);
    const held = await postJson(first.url, '/v1/leases', { resource: 'v/first', ttl_ms: 600_000, session_id: sessionId });
    expect(held.status).toBe(201);
    await first.kill();
    cloneUntilFull(join(directory, 'data', 'journal.sqlite'));

    const { url } = await GatewayProcess.start(directory, { limits: FULL });
    const session = await postJson(url, '/v1/sessions', {});
    expect([codeOf(session), session.json['sessions_max']]).toEqual(['429 too_many_sessions', FULL.sessionsPerPrincipalMax]);
    expect(Number(session.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(codeOf(await postJson(url, '/v1/leases', { resource: 'v/implied' }))).toBe('429 too_many_sessions');
    const lease = await postJson(url, '/v1/leases', { resource: 'v/named', session_id: sessionId });
    expect([codeOf(lease), lease.json['leases_max']]).toEqual(['429 too_many_leases', FULL.leasesPerSessionMax]);
    expect(Number(lease.headers['retry-after'])).toBeGreaterThanOrEqual(1);

    expect(codeOf(await send(url, { method: 'DELETE', path: `/v1/leases/${String(held.json['lease_id'])}` }))).toBe('204');
    expect(codeOf(await postJson(url, '/v1/leases', { resource: 'v/named', session_id: sessionId }))).toBe('201');
    expect(codeOf(await postJson(url, '/v1/leases', { resource: 'v/another', session_id: sessionId }))).toBe('429 too_many_leases');
    const { json } = await send(url, { method: 'GET', path: '/v1/audit?action=lease_refuse&order=asc' });
    expect((json['records'] as { code: string; path: string | null }[]).map(({ code, path }) => [path, code])).toEqual([
      [null, 'too_many_sessions'],
      ['implied', 'too_many_sessions'],
      ['named', 'too_many_leases'],
      ['another', 'too_many_leases'],
    ]);
  });

  it('a lease that is taken again and again has a last hold', async () => {
    const directory = await newDirectory();
    const { url } = await GatewayProcess.start(directory, { limits: FULL });
    const { json } = await postJson(url, '/v1/sessions', {});
    const again = (hold: number): Promise<Answer> =>
      postJson(url, '/v1/leases', { resource: 'v/held', session_id: json['session_id'], hold_id: `hold-${hold}` });
    for (let hold = 1; hold <= FULL.holdsPerLeaseMax; hold++) expect((await again(hold)).json['hold_count']).toBe(hold);
    const refused = await again(FULL.holdsPerLeaseMax + 1);
    expect([codeOf(refused), refused.json['holds_max']]).toEqual(['429 too_many_leases', FULL.holdsPerLeaseMax]);
    expect(codeOf(await again(1))).toBe('200');
  });
});

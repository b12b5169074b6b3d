import { describe, expect, it } from 'vitest';
import { type ErrorCode, refuse } from '../../../src/domain/errors.ts';
import type { TokenFacts } from '../../../src/domain/lease.ts';
import type { Principal } from '../../../src/domain/principal.ts';
import type { WriteDeps } from '../../../src/gateway/deps.ts';
import { judgedAgain } from '../../../src/gateway/judge-token.ts';
import type { Operation } from '../../../src/gateway/operation.ts';
import { resource, token } from '../../support/journal-samples.ts';

const principal = (name: string, roles: Principal['roles'], authenticated = true): Principal => ({ name, roles, scopes: [], authenticated });
const anonymous = principal('anonymous', new Set(['admin']), false);
const ended = { reason: 'broken', endedAt: '2026-01-01T00:00:00.000Z' };

const facts = (mark: bigint, more: Partial<TokenFacts> = {}): TokenFacts => ({
  mark: token(mark),
  live: null,
  atMark: { leaseRef: `ref-${mark}`, principal: 'ann', ended },
  everNamed: true,
  ...more,
});

/** Token 7, refused by the locks with `code`, while the facts are `known`. */
async function judged(code: ErrorCode, known: TokenFacts | Error, caller: Principal = anonymous, notYet: Error | null = null) {
  const refused = refuse(code, 'as the locks have it', { newer_token_exists: true });
  const operation = {
    presented: null,
    mark: null,
    envelope: { leaseId: null, caller: { principal: caller }, signal: new AbortController().signal },
  } as unknown as Operation;
  const refusalTold = () => (notYet === null ? Promise.resolve(false) : Promise.reject(notYet));
  const factsMet = () => (known instanceof Error ? Promise.reject(known) : Promise.resolve(known));
  const deps = { leases: { factsMet, refusalTold } } as unknown as WriteDeps;
  const error = await judgedAgain(deps, operation, { resource: resource('demo/a.txt'), token: token(7n) }, refused);
  return { error, stands: error === refused, presented: operation.presented, mark: operation.mark };
}

describe('a presented token that the locks refused', () => {
  it('is stale below the mark, also where the locks only knew that its lease ended; the record has token and mark', async () => {
    for (const code of ['lease_ended', 'stale_token'] as const) {
      expect(await judged(code, facts(8n))).toMatchObject({
        error: { code: 'stale_token', members: { presented_token: '7', high_water_mark: '8' } },
        presented: 7n,
        mark: 8n,
      });
    }
  });

  it('is of an ended lease at the mark', async () => {
    expect(await judged('lease_ended', facts(7n))).toMatchObject({ error: { code: 'lease_ended', members: { reason: 'broken' } }, mark: 7n });
  });

  it.each<[string, Principal, object]>([
    ['without authentication', anonymous, { presented_token: '7', high_water_mark: '8' }],
    ['to its owner', principal('ann', new Set(['writer'])), { presented_token: '7', high_water_mark: '8' }],
    ['to an administrator', principal('root', new Set(['admin'])), { presented_token: '7', high_water_mark: '8' }],
    [
      'not to anybody else, who learns that there is a newer one',
      principal('bob', new Set(['writer'])),
      { presented_token: '7', newer_token_exists: true },
    ],
  ])('shows the mark %s', async (_whom, caller, members) => {
    expect((await judged('stale_token', facts(8n), caller)).error).toMatchObject({ code: 'stale_token', members });
  });

  it('stays refused as it was where the facts allow it by now, or cannot be read', async () => {
    const live = facts(7n, { atMark: { leaseRef: 'ref-7', principal: 'ann', ended: null } });
    expect((await judged('lease_is_shared', live)).stands).toBe(true);
    expect((await judged('stale_token', refuse('journal_unavailable', 'gone'))).stands).toBe(true);
  });

  it('is not told while that may yet turn out otherwise: the write is refused for now', async () => {
    const notYet = refuse('journal_unavailable', 'not durable');
    expect((await judged('lease_ended', facts(7n), anonymous, notYet)).error).toBe(notYet);
  });

  it('is not judged again where the refusal is about the coordinator', async () => {
    expect(await judged('coordinator_unavailable', facts(8n))).toMatchObject({ stands: true, mark: null });
  });
});

import { describe, expect, test } from 'vitest';
import { fencingToken } from '../../../src/domain/fencing-token.ts';
import type { HeldLease, TokenFacts } from '../../../src/domain/lease.ts';
import type { Principal } from '../../../src/domain/principal.ts';
import { type Presented, tokenVerdict } from '../../../src/gateway/token-verdict.ts';

const anonymous: Principal = { name: 'anonymous', roles: new Set(['admin']), scopes: [], authenticated: false };
const ada: Principal = { name: 'ada', roles: new Set(['writer']), scopes: [], authenticated: true };

const lease = (token: bigint, mode: HeldLease['mode'] = 'exclusive'): HeldLease => ({
  leaseRef: `ref-${token}`,
  resources: [],
  mode,
  token: fencingToken(token),
  principal: 'ada',
  clientId: null,
});

function factsAt(mark: bigint | null, more: Partial<TokenFacts> = {}): TokenFacts {
  return {
    mark: mark === null ? null : fencingToken(mark),
    live: null,
    atMark: mark === null ? null : { leaseRef: `ref-${mark}`, principal: 'ada', ended: null },
    everNamed: false,
    ...more,
  };
}

function present(token: bigint, more: Partial<Presented> = {}): Presented {
  return { token: fencingToken(token), principal: anonymous, ownsLeaseId: null, ...more };
}

const ended = { atMark: { leaseRef: 'ref-7', principal: 'ada', ended: { reason: 'expired', endedAt: '2026-01-01T00:00:00.000Z' } } };

describe('the verdict on a token, first match wins', () => {
  test.each<[string, TokenFacts, Presented, string | null]>([
    ['a number above the mark was never issued', factsAt(7n), present(8n), 'token_not_issued'],
    ['a number on a resource without a mark was never issued', factsAt(null), present(1n), 'token_not_issued'],
    [
      'a live shared lease below the mark is told so before it is called stale',
      factsAt(7n, { live: lease(6n, 'shared') }),
      present(6n),
      'lease_is_shared',
    ],
    ['a live shared lease at the mark does not write', factsAt(7n, { live: lease(7n, 'shared') }), present(7n), 'lease_is_shared'],
    ['a number below the mark is stale', factsAt(7n), present(6n), 'stale_token'],
    ['the number at the mark writes without authentication', factsAt(7n, { live: lease(7n) }), present(7n), null],
    [
      'a wrong X-Lease-Id is refused even without authentication',
      factsAt(7n, { live: lease(7n) }),
      present(7n, { ownsLeaseId: () => false }),
      'not_lease_owner',
    ],
    ['another principal is refused', factsAt(7n, { live: lease(7n) }), present(7n, { principal: { ...ada, name: 'bob' } }), 'not_lease_owner'],
    [
      'another principal that sends the secret id may write',
      factsAt(7n, { live: lease(7n) }),
      present(7n, { principal: { ...ada, name: 'bob' }, ownsLeaseId: (ref) => ref === 'ref-7' }),
      null,
    ],
    ['an ended lease is refused though nobody took the lock since', factsAt(7n, ended), present(7n), 'lease_ended'],
    ['a stranger does not learn that the lease ended', factsAt(7n, ended), present(7n, { principal: { ...ada, name: 'bob' } }), 'not_lease_owner'],
  ])('%s', (_name, facts, presented, code) => {
    expect(tokenVerdict(facts, presented)?.code ?? null).toBe(code);
  });

  test('the mark itself is shown to the owner and without authentication, others learn only that a newer token exists', () => {
    expect(tokenVerdict(factsAt(7n), present(6n))?.members).toEqual({ presented_token: '6', high_water_mark: '7' });
    expect(tokenVerdict(factsAt(7n), present(6n, { principal: ada }))?.members).toEqual({ presented_token: '6', high_water_mark: '7' });
    expect(tokenVerdict(factsAt(7n), present(6n, { principal: { ...ada, name: 'bob' } }))?.members).toEqual({
      presented_token: '6',
      newer_token_exists: true,
    });
  });
});

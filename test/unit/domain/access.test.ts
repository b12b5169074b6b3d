import { expect, test } from 'vitest';
import { inScope, roleRefusal } from '../../../src/domain/access.ts';
import { anybody, principal } from '../../support/http-fakes.ts';

test.each([
  [[], 'demo/a', true],
  [['demo'], 'demo/a/b', true],
  [['demo'], 'demo', true],
  [['demo'], 'demo2/a', false],
  [['demo/in'], 'demo/in', true],
  [['demo/in'], 'demo/in/x', true],
  [['demo/in/'], 'demo/in/x', true],
  [['demo/in'], 'demo/inside', false],
  [['demo/in'], 'demo', false],
  [['x', 'demo/in'], 'demo/in/x', true],
] as const)('scopes %j and %s: %s', (scopes, name, within) => {
  expect(inScope(principal('p', ['writer'], scopes), name)).toBe(within);
});

test('an administrator, and anybody without authentication, is not held by scopes or roles', () => {
  expect(inScope(principal('p', ['admin'], ['demo']), 'other/a')).toBe(true);
  expect(roleRefusal(principal('p', ['admin']), 'audit')).toBeNull();
  expect(roleRefusal(anybody, 'admin')).toBeNull();
});

test('no role, no access but to what anybody may', () => {
  const nobody = principal('p', []);
  expect(roleRefusal(nobody, 'any')).toBeNull();
  for (const access of ['read_files', 'read_locks', 'write', 'read_operations', 'audit', 'admin'] as const)
    expect(roleRefusal(nobody, access)).toMatchObject({ code: 'forbidden' });
});

import { createHash } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { parseAuthFile } from '../../../src/config/auth-file.ts';
import { type Authenticator, createAuthenticator } from '../../../src/config/authenticate.ts';
import { ConfigError } from '../../../src/config/problems.ts';

const TOKEN_ANNA = 'Zm9yIGFubmEgb25seSwgbm90IGZvciBhbnlib2R5IGVsc2U';
const TOKEN_BILL = 'Zm9yIGJpbGwgb25seSwgbm90IGZvciBhbnlib2R5IGVsc2U';
const hash = (token: string) => createHash('sha256').update(token).digest('hex');

const FILE = `principals:
  - name: anna
    token_sha256: ${hash(TOKEN_ANNA)}
    roles: [writer]
    scopes: [ledger/2026, exports]
  - { name: bill, token_sha256: "${hash(TOKEN_BILL)}", roles: [admin] }
  - { name: nightly-batch, roles: [reader, auditor] }
`;

const path = join(mkdtempSync(join(tmpdir(), 'fencegate-auth-')), 'auth.yaml');
let authenticator: Authenticator;

beforeEach(() => {
  writeFileSync(path, FILE);
  authenticator = createAuthenticator(path);
});

const byToken = (authorization: string | undefined) => authenticator.authenticate({ authorization, certificateName: null });
const unauthenticated = expect.objectContaining({ code: 'unauthenticated' });

describe('a bearer token', () => {
  it('names its principal, with roles and scopes', () => {
    expect(byToken(`Bearer ${TOKEN_ANNA}`)).toEqual({
      name: 'anna',
      roles: new Set(['writer']),
      scopes: ['ledger/2026', 'exports'],
      authenticated: true,
    });
    expect(byToken(`bearer ${TOKEN_BILL}`).name).toBe('bill');
  });

  it.each([
    ['nothing', undefined],
    ['an empty header', ''],
    ['another token', `Bearer ${TOKEN_ANNA}x`],
    ['a prefix of a token', `Bearer ${TOKEN_ANNA.slice(0, -1)}`],
    ['the stored hash itself', `Bearer ${hash(TOKEN_ANNA)}`],
    ['another scheme', `Basic ${TOKEN_ANNA}`],
    ['two tokens', `Bearer ${TOKEN_ANNA} ${TOKEN_BILL}`],
    ['a joined repeated header', `Bearer ${TOKEN_ANNA}, Bearer ${TOKEN_BILL}`],
    ['the token without a scheme', TOKEN_ANNA],
  ])('refuses %s', (_, authorization) => {
    expect(() => byToken(authorization)).toThrow(unauthenticated);
  });

  it('never shows up in the refusal', () => {
    try {
      byToken(`Bearer ${TOKEN_ANNA}x`);
    } catch (thrown) {
      expect(JSON.stringify([thrown, String(thrown)])).not.toContain(TOKEN_ANNA);
    }
  });
});

describe('a client certificate', () => {
  it('names the principal with its common name', () => {
    expect(authenticator.authenticate({ authorization: undefined, certificateName: 'nightly-batch' }).name).toBe('nightly-batch');
  });

  it('does not stand in for a token that was sent and is wrong', () => {
    expect(() => authenticator.authenticate({ authorization: 'Bearer wrong', certificateName: 'nightly-batch' })).toThrow(unauthenticated);
  });

  it('of a name that is no principal is refused', () => {
    expect(() => authenticator.authenticate({ authorization: undefined, certificateName: 'Anna' })).toThrow(unauthenticated);
  });
});

describe('without a principals file', () => {
  it('everybody is the anonymous principal, who may do everything and is not authenticated', () => {
    const open = createAuthenticator(null);
    expect(open.required).toBe(false);
    const principal = open.authenticate({ authorization: 'Bearer whatever', certificateName: null });
    expect(principal).toMatchObject({ name: 'anonymous', authenticated: false, scopes: [] });
    expect([...principal.roles].sort()).toEqual(['admin', 'auditor', 'reader', 'writer']);
  });
});

describe('reading the file again', () => {
  it('lets new principals in and old ones out', () => {
    writeFileSync(path, FILE.replace(hash(TOKEN_ANNA), hash('a-new-token')));
    expect(authenticator.reload()).toEqual({ principals: 3 });
    expect(byToken('Bearer a-new-token').name).toBe('anna');
    expect(() => byToken(`Bearer ${TOKEN_ANNA}`)).toThrow(unauthenticated);
  });

  it('keeps the principals in force when the new file is bad', () => {
    writeFileSync(path, 'principals: [{ name: anna }]');
    expect(() => authenticator.reload()).toThrow(ConfigError);
    expect(byToken(`Bearer ${TOKEN_ANNA}`).name).toBe('anna');
  });
});

describe('the principals file', () => {
  const problemsOf = (text: string): readonly string[] => {
    try {
      parseAuthFile(text, 'auth.yaml');
    } catch (thrown) {
      if (thrown instanceof ConfigError) return thrown.problems;
    }
    return [];
  };
  const sha = hash(TOKEN_ANNA);

  it.each([
    ['', 'auth.yaml:1: principals is missing'],
    ['principals: []', 'auth.yaml:1: principals: expected array length to be greater or equal to 1'],
    ['principals:\n  - { name: a }', 'auth.yaml:2: principals.0.roles is missing'],
    ['principals:\n  - { name: a, roles: [] }', 'auth.yaml:2: principals.0.roles: expected array length to be greater or equal to 1'],
    ['principals:\n  - { name: a, roles: [root] }', 'auth.yaml:2: principals.0.roles.0: expected reader, writer, auditor or admin, not "root"'],
    ['principals:\n  - { name: a, roles: [admin], scope: [v] }', 'auth.yaml:2: unknown key principals.0.scope (did you mean scopes?)'],
    [
      'principals:\n  - { name: a, roles: [admin], scopes: [] }',
      'auth.yaml:2: principals.0.scopes: expected array length to be greater or equal to 1',
    ],
    [
      'principals:\n  - { name: a, roles: [admin], scopes: [/v] }',
      'auth.yaml:2: principal a: the scope "/v" does not begin with a volume name; write volume or volume/prefix',
    ],
    ['principals:\n  - { name: a, roles: [admin] }\n  - { name: a, roles: [admin] }', 'auth.yaml:3: principal a: the name is there twice'],
    [
      `principals:\n  - { name: a, roles: [admin], token_sha256: ${sha} }\n  - { name: b, roles: [admin], token_sha256: ${sha} }`,
      'auth.yaml:3: principal b: shares its token with another principal',
    ],
  ])('%j is refused with its line', (text, problem) => {
    expect(problemsOf(text)).toEqual([problem]);
  });

  it('does not repeat a token that was written where its hash belongs', () => {
    const problems = problemsOf(`principals:\n  - { name: a, roles: [admin], token_sha256: ${TOKEN_ANNA} }`);
    expect(problems).toHaveLength(1);
    expect(problems[0]).not.toContain(TOKEN_ANNA);
  });
});

import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Config } from '../../../src/config/config.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { ConfigError } from '../../../src/config/problems.ts';

const directory = mkdtempSync(join(tmpdir(), 'fencegate-config-'));

function load(yaml: string, environment: Record<string, string> = {}): Config {
  writeFileSync(join(directory, 'gate.yaml'), yaml);
  return loadConfig({ FENCEGATE_CONFIG: 'gate.yaml', ...environment }, directory);
}

function problemsOf(run: () => Config): readonly string[] {
  try {
    run();
  } catch (thrown) {
    if (thrown instanceof ConfigError) return thrown.problems;
    throw thrown;
  }
  return [];
}

const volumesOf = (list: string) => loadConfig({ FENCEGATE_VOLUMES: list }, '/srv').volumes.map(({ name, path }) => [name, path]);

describe('FENCEGATE_VOLUMES', () => {
  it('lists names and paths; a name without a path is lock-only', () => {
    expect(volumesOf('a=/vol/a,b_2=rel/b,jobs=')).toEqual([
      ['a', '/vol/a'],
      ['b_2', '/srv/rel/b'],
      ['jobs', null],
    ]);
    expect(volumesOf('a=/path=with=equals')).toEqual([['a', '/path=with=equals']]);
  });

  it('F23: of a volume that is named here alone only portable names are made', () => {
    expect(loadConfig({ FENCEGATE_VOLUMES: 'a=/vol/a' }, '/srv').volumes[0]?.names).toBe('portable');
    expect(loadConfig({}, '/srv').volumes[0]?.names).toBe('portable');
  });

  it('has no sample volume once volumes are named', () => {
    expect(loadConfig({ FENCEGATE_VOLUMES: 'demo=/vol/demo' }, '/srv').sampleVolume).toBeNull();
  });

  it.each([
    ['a', 'has no "="'],
    ['a=/x,a=/y', 'a is named twice'],
    ['../a=/x', 'is not a volume name'],
    ['a=/x,,b=/y', 'has no "="'],
  ])('refuses %s', (list, words) => {
    expect(problemsOf(() => loadConfig({ FENCEGATE_VOLUMES: list }, '/srv'))).toEqual([expect.stringContaining(words)]);
  });

  it('B36: refuses volumes that lie in one another, and a volume that holds the journal', () => {
    expect(problemsOf(() => loadConfig({ FENCEGATE_VOLUMES: 'a=/vol,b=/vol/b' }, '/srv'))).toEqual(['volumes a and b overlap: /vol, /vol/b']);
    expect(problemsOf(() => loadConfig({ FENCEGATE_VOLUMES: 'a=/vol/x/,b=/vol/x' }, '/srv'))).toHaveLength(1);
    expect(problemsOf(() => loadConfig({ FENCEGATE_VOLUMES: 'a=/vol,b=/volume' }, '/srv'))).toEqual([]);
    expect(problemsOf(() => loadConfig({ FENCEGATE_VOLUMES: 'a=/srv' }, '/srv'))).toEqual([
      expect.stringContaining('contains the data directory /srv/data'),
    ]);
  });
});

describe('FENCEGATE_CONFIG', () => {
  it('gives every setting of a volume', () => {
    const config = load(`
volumes:
  books:
    path: /vol/books
    tokens: signed
    require_token: once_leased
    range_writes: in-place
    small_bodies: file
    on_coordinator_loss: finish_held
    hard_links: split
    names: any
    attributes: drop
    read_only: true
    lease: { ttl_ms_min: 5000, ttl_ms_max: 60000, max_hold_ms: 600000, lock_delay_ms: 1000, infinite: false }
    limits: { body_bytes: 1000, staged_bytes: 2000, in_flight: 4, queue_length: 10 }
signing_keys:
  - { id: k2, file: gate.yaml }
  - { id: k1, file: gate.yaml }
audit: { keep_days: 400, keep_bytes: 1073741824, key_file: gate.yaml }
`);
    expect(config.volumes).toEqual([
      {
        name: 'books',
        path: '/vol/books',
        tokens: 'signed',
        requireToken: 'once_leased',
        rangeWrites: 'in-place',
        onCoordinatorLoss: 'finish_held',
        hardLinks: 'split',
        names: 'any',
        attributes: 'drop',
        readOnly: true,
        lease: { ttlMsMin: 5_000, ttlMsMax: 60_000, maxHoldMs: 600_000, lockDelayMs: 1_000, infinite: false },
        limits: { bodyBytes: 1_000, stagedBytes: 2_000, inFlight: 4, queueLength: 10 },
      },
    ]);
    const file = join(directory, 'gate.yaml');
    expect(config.signingKeys).toEqual([
      { id: 'k2', file },
      { id: 'k1', file },
    ]);
    expect(config.audit).toEqual({ keepDays: 400, keepBytes: 1_073_741_824, keyFile: file });
  });

  it.each([
    ['true', 'true'],
    ['false', 'false'],
    ['once_leased', 'once_leased'],
  ])('reads require_token: %s', (yaml, policy) => {
    expect(load(`volumes: { a: { path: /a, require_token: ${yaml} } }`).volumes[0]?.requireToken).toBe(policy);
  });

  it('adds settings to the volumes of the environment, and to the sample volume', () => {
    const listed = load('volumes: { a: { read_only: true } }', { FENCEGATE_VOLUMES: 'a=/a,b=/b' });
    expect(listed.volumes.map(({ name, readOnly }) => [name, readOnly])).toEqual([
      ['a', true],
      ['b', false],
    ]);
    const sample = load('volumes: { demo: { require_token: true } }');
    expect(sample.sampleVolume).toBe('demo');
    expect(sample.volumes.map(({ name, requireToken }) => [name, requireToken])).toEqual([['demo', 'true']]);
  });

  it('may name volumes of its own, also lock-only ones, beside those of the environment', () => {
    const config = load('volumes: { b: { path: /b }, jobs: { path: null } }', { FENCEGATE_VOLUMES: 'a=/a' });
    expect(config.volumes.map(({ name, path }) => [name, path])).toEqual([
      ['a', '/a'],
      ['b', '/b'],
      ['jobs', null],
    ]);
  });

  it('refuses a volume without a path, and one with two', () => {
    expect(problemsOf(() => load('volumes:\n  leger: {}\n', { FENCEGATE_VOLUMES: 'ledger=/a' }))).toEqual([
      'gate.yaml:2: volumes.leger has no path (did you mean ledger?); give one, or "path: null" for a lock-only volume',
    ]);
    expect(problemsOf(() => load('volumes:\n  a: { path: /b }\n', { FENCEGATE_VOLUMES: 'a=/a' }))).toEqual([
      'gate.yaml:2: volumes.a.path differs from the one in FENCEGATE_VOLUMES',
    ]);
  });

  it('refuses unknown keys with the line and the nearest known key, and reports all of them', () => {
    const yaml = 'volumes:\n  a:\n    path: /a\n    requiretoken: true\n    lease:\n      ttl_min: 5\nsigning_key: []\n';
    expect(problemsOf(() => load(yaml))).toEqual([
      'gate.yaml:7: unknown key signing_key (did you mean signing_keys?)',
      'gate.yaml:4: unknown key volumes.a.requiretoken (did you mean require_token?)',
      'gate.yaml:6: unknown key volumes.a.lease.ttl_min (did you mean ttl_ms_min?)',
    ]);
  });

  it('refuses values of the wrong form, with the line', () => {
    const yaml = 'volumes:\n  a:\n    path: /a\n    tokens: sealed\n    require_token: "yes"\n    limits: { in_flight: 0 }\naudit: 5\n';
    expect(problemsOf(() => load(yaml))).toEqual([
      'gate.yaml:4: volumes.a.tokens: expected issued or signed, not "sealed"',
      'gate.yaml:5: volumes.a.require_token: expected true or false or once_leased, not "yes"',
      'gate.yaml:6: volumes.a.limits.in_flight: expected a whole number from 1 to 128, not 0',
      'gate.yaml:7: audit: expected a group of settings, not 5',
    ]);
  });

  it.each([
    ['volumes: [', 'gate.yaml:1: '],
    ['volumes: {}\nvolumes: {}\n', 'gate.yaml:2: '],
    ['a: &a [x]\nb: *c\n', 'gate.yaml:'],
    ['volumes:\n\ta: 1\n', 'gate.yaml:2: '],
  ])('refuses %j with its line', (yaml, start) => {
    const problems = problemsOf(() => load(yaml));
    expect(problems.length).toBeGreaterThan(0);
    expect(problems.every((problem) => problem.startsWith(start))).toBe(true);
  });

  it('an empty file changes nothing', () => {
    expect(load('')).toEqual(loadConfig({}, directory));
    expect(load('# nothing yet\n')).toEqual(loadConfig({}, directory));
  });

  it('wants a key for signed tokens, and every key id once', () => {
    expect(problemsOf(() => load('volumes: { a: { path: /a, tokens: signed } }'))).toEqual([
      'gate.yaml:1: volumes.a.tokens is signed, but there are no signing_keys',
    ]);
    expect(problemsOf(() => load('signing_keys:\n  - { id: k, file: gate.yaml }\n  - { id: k, file: gate.yaml }'))).toEqual([
      'gate.yaml:3: signing_keys: the id k is there twice',
    ]);
    expect(problemsOf(() => load('signing_keys:\n  - { id: k, file: none }\naudit: { key_file: none }'))).toEqual([
      expect.stringMatching(/^gate\.yaml:2: signing_keys\.k\.file: .*none cannot be read \(ENOENT\)$/),
      expect.stringMatching(/^gate\.yaml:3: audit\.key_file: .*none cannot be read \(ENOENT\)$/),
    ]);
  });

  it('refuses an alias inside of what it names, and takes any other', () => {
    expect(problemsOf(() => load('volumes:\n  a: &a\n    path: /a\n    lease: *a\n'))).toEqual(['gate.yaml:4: *a stands inside what it names']);
    expect(load('volumes:\n  a: { path: /a, lease: &l { ttl_ms_min: 5000 } }\n  b: { path: /b, lease: *l }\n').volumes[1]?.lease.ttlMsMin).toBe(5000);
  });
});

describe('B35: lease settings that make no sense are refused, never bent', () => {
  it.each([
    ['{ ttl_ms_min: 999 }', 'expected a whole number from 1000 to 3600000'],
    ['{ ttl_ms_max: 3600001 }', 'expected a whole number from 1000 to 3600000'],
    ['{ ttl_ms_min: 60000, ttl_ms_max: 30000 }', 'is above ttl_ms_max'],
    ['{ ttl_ms_min: 5000, ttl_ms_max: 5500 }', 'leaves less than 1000 ms'],
    ['{ ttl_ms_min: 5000, max_hold_ms: 4000 }', 'is below ttl_ms_min'],
    ['{ lock_delay_ms: -1 }', 'expected a whole number from 0'],
    ['{ lock_delay_ms: 3600001 }', 'expected a whole number from 0'],
  ])('%s', (lease, words) => {
    expect(problemsOf(() => load(`volumes: { a: { path: /a, lease: ${lease} } }`))).toEqual([expect.stringContaining(words)]);
  });

  it('a take-over time that a busy owner would miss is refused', () => {
    expect(problemsOf(() => loadConfig({ FENCEGATE_TAKEOVER_AFTER_MS: '3000' }, directory))).toEqual([expect.stringContaining('from 5000')]);
  });
});

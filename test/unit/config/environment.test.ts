import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ENVIRONMENT_VARIABLES } from '../../../src/config/environment-schema.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { ConfigError } from '../../../src/config/problems.ts';

const directory = mkdtempSync(join(tmpdir(), 'fencegate-config-'));

function problemsOf(environment: Record<string, string>): readonly string[] {
  try {
    loadConfig(environment, directory);
  } catch (thrown) {
    if (thrown instanceof ConfigError) return thrown.problems;
    throw thrown;
  }
  return [];
}

describe('the environment', () => {
  it('needs nothing: every setting has its documented default', () => {
    expect(loadConfig({}, '/srv/gate')).toMatchObject({
      host: '127.0.0.1',
      port: 8080,
      dataDir: '/srv/gate/data',
      sampleVolume: 'demo',
      tls: null,
      authFile: null,
      allowedOrigins: [],
      allowedHosts: [],
      logLevel: 'info',
      bodyMaxBytes: null,
      rateLimitPerSecond: 0,
      uploads: { perPrincipalMax: 64, idleMs: 30_000, bytesPerSecondMin: 1024 },
      drainMs: 30_000,
      takeoverAfterMs: 15_000,
      signingKeys: [],
      audit: { keepDays: null, keepBytes: null, keyFile: null },
    });
    expect(loadConfig({}, '/srv/gate').volumes).toEqual([
      expect.objectContaining({ name: 'demo', path: '/srv/gate/data/volumes/demo', tokens: 'issued', requireToken: 'false', readOnly: false }),
    ]);
  });

  it('counts an empty variable as unset', () => {
    const empty = Object.fromEntries(ENVIRONMENT_VARIABLES.map(([name]) => [name, '']));
    expect(loadConfig(empty, directory)).toEqual(loadConfig({}, directory));
  });

  it('gives one frozen object, all the way down', () => {
    const config = loadConfig({}, directory);
    expect(() => Object.assign(config.volumes[0] ?? {}, { readOnly: true })).toThrow(TypeError);
    expect(() => Object.assign(config.uploads, { idleMs: 1 })).toThrow(TypeError);
  });

  it('refuses unknown FENCEGATE_ names and says which one was meant', () => {
    expect(problemsOf({ FENCEGATE_PROT: '80' })).toEqual(['FENCEGATE_PROT: unknown variable (did you mean FENCEGATE_PORT?)']);
    expect(problemsOf({ FENCEGATE_SOMETHING_ELSE_ENTIRELY: '80' })).toEqual(['FENCEGATE_SOMETHING_ELSE_ENTIRELY: unknown variable']);
  });

  it('knows the names that clients read, and ignores the environment of other programs', () => {
    const files = { FENCEGATE_CA_FILE: 'x', FENCEGATE_CERT_FILE: 'x', FENCEGATE_KEY_FILE: 'x' };
    const clients = {
      ...files,
      FENCEGATE_URL: 'x',
      FENCEGATE_AUTH_TOKEN: 'x',
      FENCEGATE_RESOURCE: 'x',
      FENCEGATE_LEASE_ID: 'x',
      FENCEGATE_FENCING_TOKEN: 'x',
    };
    expect(problemsOf({ ...clients, PATH: '/bin', FENCE: '1' })).toEqual([]);
  });

  it('reports every problem at once, one line each', () => {
    const problems = problemsOf({
      FENCEGATE_PORT: '80a',
      FENCEGATE_LOG_LEVEL: 'loud',
      FENCEGATE_INSECURE: 'yes',
      FENCEGATE_HOTS: 'x',
      FENCEGATE_VOLUMES: 'Bad=/a',
      FENCEGATE_TLS_KEY: '/nowhere.pem',
    });
    expect(problems).toEqual([
      'FENCEGATE_HOTS: unknown variable (did you mean FENCEGATE_HOST?)',
      'FENCEGATE_PORT="80a": expected a whole number from 0 to 65535',
      'FENCEGATE_LOG_LEVEL="loud": expected trace, debug, info, warn, error, fatal or silent',
      'FENCEGATE_INSECURE="yes": expected true or false',
      'FENCEGATE_VOLUMES: "Bad" is not a volume name ([a-z0-9][a-z0-9_-]{0,62})',
      'FENCEGATE_TLS_KEY: needs FENCEGATE_TLS_CERT',
    ]);
  });

  it.each([
    ['FENCEGATE_PORT', '65536'],
    ['FENCEGATE_PORT', '-1'],
    ['FENCEGATE_PORT', '8e3'],
    ['FENCEGATE_PORT', ' 80'],
    ['FENCEGATE_DRAIN_MS', '1.5'],
    ['FENCEGATE_BODY_MAX_BYTES', '0'],
    ['FENCEGATE_UPLOADS_MAX', '0'],
    ['FENCEGATE_COORDINATOR', 'etcd'],
    ['FENCEGATE_ZOOKEEPER_ROOT', 'locks'],
  ])('refuses %s=%s', (name, value) => {
    expect(problemsOf({ [name]: value })).toHaveLength(1);
  });

  it('refuses the coordinator zookeeper without the address of an ensemble', () => {
    expect(problemsOf({ FENCEGATE_COORDINATOR: 'zookeeper' })).toEqual([
      'FENCEGATE_COORDINATOR=zookeeper: needs FENCEGATE_ZOOKEEPER_CONNECT, such as zk1:2181,zk2:2181,zk3:2181',
    ]);
  });

  it('refuses a gRPC port that is the one of HTTP', () => {
    expect(problemsOf({ FENCEGATE_GRPC_PORT: '8080' })[0]).toContain('a port of its own');
  });

  it('never puts a problem on two lines, whatever the value is', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: 'binary' }), (value) => {
        for (const problem of problemsOf({ FENCEGATE_PORT: value, FENCEGATE_VOLUMES: value, FENCEGATE_ALLOWED_ORIGINS: value }))
          expect(problem).not.toContain('\n');
      }),
    );
  });
});

describe('who may reach the gateway', () => {
  it.each(['127.0.0.1', '127.8.9.10', 'localhost', 'LOCALHOST', '::1', '[::1]', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1'])(
    'listens on %s without authentication',
    (host) => {
      expect(problemsOf({ FENCEGATE_HOST: host })).toEqual([]);
    },
  );

  it.each(['0.0.0.0', '::', '10.0.0.1', '::ffff:10.0.0.1', 'gate.example.org', 'localhost.example.org'])(
    'refuses %s without authentication',
    (host) => {
      expect(problemsOf({ FENCEGATE_HOST: host })).toEqual([
        `FENCEGATE_HOST=${host}: not a loopback address; set FENCEGATE_AUTH_FILE, or FENCEGATE_INSECURE=true to let everybody in`,
      ]);
      expect(problemsOf({ FENCEGATE_HOST: host, FENCEGATE_INSECURE: 'true' })).toEqual([]);
      const authFile = join(directory, 'auth.yaml');
      writeFileSync(authFile, 'principals: []\n');
      expect(problemsOf({ FENCEGATE_HOST: host, FENCEGATE_AUTH_FILE: authFile })).toEqual([]);
    },
  );

  it('wants a certificate and its key together, and principals for mutual TLS', () => {
    expect(problemsOf({ FENCEGATE_TLS_CERT: 'a.pem' })).toEqual(['FENCEGATE_TLS_CERT: needs FENCEGATE_TLS_KEY']);
    expect(problemsOf({ FENCEGATE_TLS_CLIENT_CA: 'ca.pem' })).toEqual(['FENCEGATE_TLS_CLIENT_CA: needs FENCEGATE_TLS_CERT and FENCEGATE_TLS_KEY']);
    const files = { FENCEGATE_TLS_CERT: 'a.pem', FENCEGATE_TLS_KEY: 'a.key', FENCEGATE_TLS_CLIENT_CA: 'ca.pem' };
    expect(problemsOf(files)[0]).toBe('FENCEGATE_TLS_CLIENT_CA: needs FENCEGATE_AUTH_FILE, which says what each certificate may do');
  });

  it('says which file cannot be read', () => {
    expect(problemsOf({ FENCEGATE_AUTH_FILE: 'missing.yaml' })).toEqual([
      `FENCEGATE_AUTH_FILE: ${join(directory, 'missing.yaml')} cannot be read (ENOENT)`,
    ]);
    expect(problemsOf({ FENCEGATE_CONFIG: 'missing.yaml' })).toEqual(['FENCEGATE_CONFIG="missing.yaml": cannot be read (ENOENT)']);
  });

  it('refuses a data directory that is a file, lies under one, or on a file system of the kernel', () => {
    const file = join(directory, 'a-file');
    writeFileSync(file, '');
    expect(problemsOf({ FENCEGATE_DATA_DIR: 'a-file' })).toEqual([`FENCEGATE_DATA_DIR=${file}: ${file} is not a directory`]);
    expect(problemsOf({ FENCEGATE_DATA_DIR: 'a-file/deep/down' })).toEqual([`FENCEGATE_DATA_DIR=${file}/deep/down: ${file} is not a directory`]);
    expect(problemsOf({ FENCEGATE_DATA_DIR: '/proc/self/no/such' })).toEqual([
      expect.stringMatching(/\/proc\/self is on proc, which keeps no files/),
    ]);
    expect(problemsOf({ FENCEGATE_DATA_DIR: 'not/there/yet' })).toEqual([]);
  });

  it('takes origins as browsers send them and nothing else', () => {
    expect(loadConfig({ FENCEGATE_ALLOWED_ORIGINS: 'https://a.example, http://b.example:8080/' }, directory).allowedOrigins).toEqual([
      'https://a.example',
      'http://b.example:8080',
    ]);
    for (const bad of ['*', 'a.example', 'https://a.example/path', 'null']) expect(problemsOf({ FENCEGATE_ALLOWED_ORIGINS: bad })).toHaveLength(1);
  });
});

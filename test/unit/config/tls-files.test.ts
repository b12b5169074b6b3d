import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkTlsFiles } from '../../../src/config/tls-files.ts';
import { Certificates } from '../../support/certificates.ts';

/** What is wrong with the TLS files is said in words that name the setting, one line each. */

const directory = mkdtempSync(join(tmpdir(), 'fencegate-tls-files-'));
const certificates = new Certificates(directory);
const at = (name: string): string => certificates.file(name);

beforeAll(() => {
  certificates.authority('ca');
  certificates.expiredAuthority('old-ca');
  for (const name of ['server', 'other']) certificates.issue(name, 'localhost', 'ca');
  certificates.lockKey('server');
  certificates.asDer('server');
  writeFileSync(at('garbage.pem'), 'no certificate, and no key either');
  writeFileSync(at('empty.pem'), '');
  writeFileSync(at('damaged.crt'), certificates.pem('server.crt').replace(/[A-Za-z0-9+/]{40}/, 'A'.repeat(40)));
  writeFileSync(at('damaged.key'), certificates.pem('server.key').replace(/[A-Za-z0-9+/]{40}/, 'A'.repeat(40)));
  writeFileSync(at('chain.crt'), `Bag Attributes\n${certificates.pem('server.crt')}${certificates.pem('ca.crt')}`);
  writeFileSync(at('both-cas.crt'), certificates.pem('old-ca.crt') + certificates.pem('ca.crt'));
});
afterAll(() => rmSync(directory, { recursive: true }));

function problemsOf(certFile: string, keyFile: string, clientCaFile: string | null = null): string[] {
  const problems: string[] = [];
  checkTlsFiles({ certFile: at(certFile), keyFile: at(keyFile), clientCaFile: clientCaFile === null ? null : at(clientCaFile) }, problems);
  return problems;
}

describe('TLS files', () => {
  it.each([
    ['server.crt', 'server.key', null],
    ['chain.crt', 'server.key', 'ca.crt'],
    ['server.crt', 'server.key', 'both-cas.crt'],
  ])('that go together are taken: %s, %s, %s', (cert, key, ca) => {
    expect(problemsOf(cert, key, ca)).toEqual([]);
  });

  it('a key of another certificate is named with the certificate that it does not fit', () => {
    expect(problemsOf('server.crt', 'other.key')).toEqual([
      `FENCEGATE_TLS_KEY: ${at('other.key')} is not the key of the first certificate in FENCEGATE_TLS_CERT (${at('server.crt')})`,
    ]);
  });

  it.each([
    ['garbage.pem', /^FENCEGATE_TLS_CERT: \S+ has no certificate in PEM form/],
    ['empty.pem', /^FENCEGATE_TLS_CERT: \S+ has no certificate in PEM form/],
    ['server.key', /^FENCEGATE_TLS_CERT: \S+ has no certificate in PEM form/],
    ['server.der', /^FENCEGATE_TLS_CERT: \S+ has no certificate in PEM form/],
    ['damaged.crt', /^FENCEGATE_TLS_CERT: certificate 1 in \S+ is damaged/],
    ['absent.crt', /^FENCEGATE_TLS_CERT: \S+ cannot be read \(ENOENT\)$/],
    ['.', /^FENCEGATE_TLS_CERT: \S+ cannot be read \(EISDIR\)$/],
  ])('as a certificate %s is refused', (name, words) => {
    expect(problemsOf(name, 'server.key')).toEqual([expect.stringMatching(words)]);
  });

  it.each([
    ['garbage.pem', /^FENCEGATE_TLS_KEY: \S+ has no private key in PEM form/],
    ['server.crt', /^FENCEGATE_TLS_KEY: \S+ has no private key in PEM form/],
    ['damaged.key', /^FENCEGATE_TLS_KEY: the private key in \S+ is damaged/],
    ['server.locked.key', /^FENCEGATE_TLS_KEY: \S+ is protected by a passphrase/],
    ['absent.key', /^FENCEGATE_TLS_KEY: \S+ cannot be read \(ENOENT\)$/],
  ])('as a key %s is refused', (name, words) => {
    expect(problemsOf('server.crt', name)).toEqual([expect.stringMatching(words)]);
  });

  it.each([
    ['garbage.pem', /^FENCEGATE_TLS_CLIENT_CA: \S+ has no certificate in PEM form/],
    ['damaged.crt', /^FENCEGATE_TLS_CLIENT_CA: certificate 1 in \S+ is damaged/],
    ['old-ca.crt', /^FENCEGATE_TLS_CLIENT_CA: the authority in \S+ expired on .*GMT; no certificate of a client could be verified$/],
    ['absent.crt', /^FENCEGATE_TLS_CLIENT_CA: \S+ cannot be read \(ENOENT\)$/],
  ])('as the authority of clients %s is refused', (name, words) => {
    expect(problemsOf('server.crt', 'server.key', name)).toEqual([expect.stringMatching(words)]);
  });

  it('all that is wrong is said at once, and nothing of a key is repeated', () => {
    const problems = problemsOf('garbage.pem', 'damaged.key', 'old-ca.crt');
    expect(problems.map((line) => line.split(':')[0])).toEqual(['FENCEGATE_TLS_CERT', 'FENCEGATE_TLS_KEY', 'FENCEGATE_TLS_CLIENT_CA']);
    const secret = readFileSync(at('damaged.key'), 'utf8').split('\n')[1] ?? '';
    expect(problems.join('\n')).not.toContain(secret);
    expect(problems.some((line) => line.includes('\n'))).toBe(false);
  });
});

import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openClient } from '../../../src/cli/connection.ts';
import { UsageError } from '../../../src/cli/usage-error.ts';
import { FencegateClient } from '../../../src/client/index.ts';
import type { ClientTls } from '../../../src/client/own-fetch.ts';
import { Certificates } from '../../support/certificates.ts';
import { newDirectory, removeDirectory } from '../../support/gateway-settings.ts';

/** Certificates and keys that are not what they are taken for: told before anything is sent, by the name that they were given under. */

const URL = 'https://127.0.0.1:1';
let directory: string;
let certificates: Certificates;

beforeAll(async () => {
  directory = await newDirectory();
  certificates = new Certificates(directory);
  certificates.authority('ca');
  certificates.issue('own', 'own', 'ca');
  certificates.issue('other', 'other', 'ca');
  certificates.lockKey('own');
  certificates.asDer('own');
  writeFileSync(certificates.file('empty.pem'), '');
  writeFileSync(certificates.file('notes.txt'), 'the certificate is on the other disk\n');
  writeFileSync(certificates.file('cut.crt'), certificates.pem('own.crt').replace(/\n.{64}\n/, '\n'));
  writeFileSync(certificates.file('cut.key'), certificates.pem('own.key').replace(/\n.{64}\n/, '\n'));
});
afterAll(() => removeDirectory(directory));

interface Parts {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

const NO_CERTIFICATE = 'has no certificate in PEM form (-----BEGIN CERTIFICATE-----)';
const VARIABLES = { ca: 'FENCEGATE_CA_FILE', cert: 'FENCEGATE_CERT_FILE', key: 'FENCEGATE_KEY_FILE' } as const;

/** Files, which part is at fault, and what is said of it. */
const CASES: readonly (readonly [what: string, files: Parts, part: keyof Parts, says: string])[] = [
  ['an authority without a word in it', { ca: 'empty.pem' }, 'ca', NO_CERTIFICATE],
  ['an authority that is a text', { ca: 'notes.txt' }, 'ca', NO_CERTIFICATE],
  ['an authority that is a key', { ca: 'ca.key' }, 'ca', NO_CERTIFICATE],
  ['an authority in binary form', { ca: 'own.der' }, 'ca', NO_CERTIFICATE],
  ['an authority of which a part is missing', { ca: 'cut.crt' }, 'ca', 'is damaged: certificate 1 of it cannot be read'],
  ['a certificate that is a key', { cert: 'own.key', key: 'own.key' }, 'cert', NO_CERTIFICATE],
  ['a key that is a certificate', { cert: 'own.crt', key: 'own.crt' }, 'key', 'has no private key in PEM form (-----BEGIN PRIVATE KEY-----)'],
  ['a key of which a part is missing', { cert: 'own.crt', key: 'cut.key' }, 'key', 'is damaged: its private key cannot be read'],
  [
    'a key under a passphrase',
    { cert: 'own.crt', key: 'own.locked.key' },
    'key',
    'is protected by a passphrase, which nobody is there to enter; store the key without one',
  ],
  ['the key of another certificate', { cert: 'own.crt', key: 'other.key' }, 'key', 'is not the key of the first certificate in'],
];

const variablesOf = (files: Parts): Record<string, string> =>
  Object.fromEntries(Object.entries(files).map(([part, file]) => [VARIABLES[part as keyof Parts], certificates.file(file as string)]));
const textsOf = (files: Parts): ClientTls =>
  Object.fromEntries(Object.entries(files).map(([part, file]) => [part, certificates.pem(file as string)]));

describe('certificates and keys', () => {
  it.each(CASES)('%s: the command line names the variable and the file', async (_what, files, part, says) => {
    const opening = openClient({ FENCEGATE_URL: URL, ...variablesOf(files) }, {});
    await expect(opening).rejects.toThrow(UsageError);
    await expect(opening).rejects.toThrow(`${VARIABLES[part]}: ${certificates.file(files[part] ?? '')} ${says}`);
  });

  it.each(CASES.slice(1))('%s: the SDK names the option', (_what, files, part, says) => {
    const made = (): FencegateClient => new FencegateClient({ url: URL, tls: textsOf(files) });
    expect(made).toThrow(TypeError);
    expect(made).toThrow(`tls.${part} ${says}`);
  });

  it.each(['ca', 'cert', 'key'] as const)('a file for %s that cannot be read is named, with its variable', async (part) => {
    for (const [file, code] of [
      ['.', 'EISDIR'],
      ['nowhere.pem', 'ENOENT'],
    ] as const) {
      const own = variablesOf({ ca: 'ca.crt', cert: 'own.crt', key: 'own.key' });
      const opening = openClient({ FENCEGATE_URL: URL, ...own, [VARIABLES[part]]: file }, {});
      await expect(opening).rejects.toThrow(new UsageError(`${VARIABLES[part]}: ${file} cannot be read (${code})`));
    }
  });

  it('that are what they are taken for pass, also several authorities in one file with words between them', async () => {
    const several = `first\n${certificates.pem('ca.crt')}second\n${certificates.pem('own.crt')}`;
    const client = new FencegateClient({ url: URL, tls: { ...textsOf({ cert: 'own.crt', key: 'own.key' }), ca: several } });
    await client.close();
    await (await openClient({ FENCEGATE_URL: URL, ...variablesOf({ ca: 'ca.crt', cert: 'own.crt', key: 'own.key' }) }, {})).close();
  });

  it('are not looked at for a gateway without TLS', async () => {
    await (await openClient({ FENCEGATE_URL: 'http://127.0.0.1:1', FENCEGATE_CA_FILE: 'nowhere.pem' }, {})).close();
  });
});

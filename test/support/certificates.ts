import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Certificates made by openssl for one run, as PEM files in `directory`. */
export class Certificates {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** A certificate authority of its own. */
  authority(name: string): void {
    this.#openssl('req', '-x509', ...NEW_KEY, '-keyout', `${name}.key`, '-out', `${name}.crt`, '-subj', `/CN=${name}`, '-days', '1');
  }

  /** An authority that was good until yesterday. */
  expiredAuthority(name: string): void {
    this.#openssl('req', ...NEW_KEY, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${name}`);
    this.#openssl('x509', '-req', '-in', `${name}.csr`, '-signkey', `${name}.key`, '-out', `${name}.crt`, '-days', '-1');
  }

  /** The private key of `name` under a passphrase, as `${name}.locked.key`. */
  lockKey(name: string): void {
    this.#openssl('pkey', '-in', `${name}.key`, '-aes256', '-passout', 'pass:secret', '-out', `${name}.locked.key`);
  }

  /** The certificate of `name` in binary form, as `${name}.der`. */
  asDer(name: string): void {
    this.#openssl('x509', '-in', `${name}.crt`, '-outform', 'DER', '-out', `${name}.der`);
  }

  /** A certificate with the common name `commonName`, valid for the loopback. */
  issue(name: string, commonName: string, authority: string): void {
    this.#openssl(
      'req',
      ...NEW_KEY,
      '-keyout',
      `${name}.key`,
      '-out',
      `${name}.csr`,
      '-subj',
      `/CN=${commonName}`,
      '-addext',
      'subjectAltName=IP:127.0.0.1,DNS:localhost',
    );
    this.#openssl(
      'x509',
      '-req',
      '-in',
      `${name}.csr`,
      '-CA',
      `${authority}.crt`,
      '-CAkey',
      `${authority}.key`,
      '-CAcreateserial',
      '-copy_extensions',
      'copy',
      '-out',
      `${name}.crt`,
      '-days',
      '1',
    );
  }

  file(name: string): string {
    return join(this.#directory, name);
  }

  pem(name: string): string {
    return readFileSync(this.file(name), 'utf8');
  }

  #openssl(...args: string[]): void {
    execFileSync('openssl', args, { cwd: this.#directory, stdio: 'pipe' });
  }
}

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

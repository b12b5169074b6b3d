import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import type { ClientTls } from './own-fetch.ts';

/** What messages call each part: the option, or the variable and its file. */
export type TlsNames = Readonly<Record<keyof ClientTls, string>>;

const CERTIFICATE = /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----.*?-----END (?:X509 |TRUSTED )?CERTIFICATE-----/gs;
const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----/;
const LOCKED_KEY = /-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m;

/**
 * What is wrong with certificates and a key, in words that name the part; `null` when they are what they are taken for. The TLS library would pass over
 * an authority without a certificate in silence, and trust nobody; of the rest it says what, and not where.
 */
export function tlsProblem({ ca, cert, key }: ClientTls, names: TlsNames): string | null {
  if (ca !== undefined) {
    const authorities = certificatesIn(ca, names.ca);
    if (typeof authorities === 'string') return authorities;
  }
  if (cert === undefined || key === undefined) return null;
  const chain = certificatesIn(cert, names.cert);
  if (typeof chain === 'string') return chain;
  const own = privateKeyIn(key, names.key);
  if (typeof own === 'string') return own;
  return chain[0]?.checkPrivateKey(own) === true ? null : `${names.key} is not the key of the first certificate in ${names.cert}`;
}

function certificatesIn(text: string, name: string): X509Certificate[] | string {
  const blocks = text.match(CERTIFICATE) ?? [];
  if (blocks.length === 0) return `${name} has no certificate in PEM form (-----BEGIN CERTIFICATE-----)`;
  const certificates: X509Certificate[] = [];
  for (const [index, block] of blocks.entries()) {
    try {
      certificates.push(new X509Certificate(block));
    } catch {
      return `${name} is damaged: certificate ${index + 1} of it cannot be read`;
    }
  }
  return certificates;
}

function privateKeyIn(text: string, name: string): KeyObject | string {
  if (LOCKED_KEY.test(text)) return `${name} is protected by a passphrase, which nobody is there to enter; store the key without one`;
  if (!PRIVATE_KEY.test(text)) return `${name} has no private key in PEM form (-----BEGIN PRIVATE KEY-----)`;
  try {
    return createPrivateKey({ key: text, format: 'pem' });
  } catch {
    return `${name} is damaged: its private key cannot be read`;
  }
}

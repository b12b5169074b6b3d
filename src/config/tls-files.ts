import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { TlsFiles } from './config.ts';
import { causeOf } from './problems.ts';

/**
 * Whether the TLS files are what they are called and go together, each problem in words that name the setting: what the TLS library says
 * when it meets them (`key values mismatch`, `no start line`) names none. Their contents are not kept.
 */
export function checkTlsFiles({ certFile, keyFile, clientCaFile }: TlsFiles, problems: string[]): void {
  const before = problems.length;
  const chain = certificatesIn('FENCEGATE_TLS_CERT', certFile, problems);
  const key = privateKeyIn('FENCEGATE_TLS_KEY', keyFile, problems);
  const [own] = chain;
  if (own !== undefined && key !== null && !own.checkPrivateKey(key))
    problems.push(`FENCEGATE_TLS_KEY: ${keyFile} is not the key of the first certificate in FENCEGATE_TLS_CERT (${certFile})`);
  if (clientCaFile !== null)
    checkAuthorities('FENCEGATE_TLS_CLIENT_CA', clientCaFile, certificatesIn('FENCEGATE_TLS_CLIENT_CA', clientCaFile, problems), problems);
  if (problems.length === before) checkAccepted({ certFile, keyFile, clientCaFile }, problems);
}

const CERTIFICATE = /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----.*?-----END (?:X509 |TRUSTED )?CERTIFICATE-----/gs;

function certificatesIn(name: string, path: string, problems: string[]): X509Certificate[] {
  const text = textOf(name, path, problems);
  if (text === null) return [];
  const blocks = text.match(CERTIFICATE) ?? [];
  if (blocks.length === 0) problems.push(`${name}: ${path} has no certificate in PEM form (-----BEGIN CERTIFICATE-----)`);
  const certificates: X509Certificate[] = [];
  for (const [index, block] of blocks.entries()) {
    try {
      certificates.push(new X509Certificate(block));
    } catch (thrown) {
      problems.push(`${name}: certificate ${index + 1} in ${path} is damaged (${causeOf(thrown)})`);
      return [];
    }
  }
  return certificates;
}

function privateKeyIn(name: string, path: string, problems: string[]): KeyObject | null {
  const text = textOf(name, path, problems);
  if (text === null) return null;
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(text)) {
    problems.push(`${name}: ${path} is protected by a passphrase, which nobody is there to enter; store the key without one`);
    return null;
  }
  try {
    return createPrivateKey({ key: text, format: 'pem' });
  } catch (thrown) {
    if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text)) problems.push(`${name}: the private key in ${path} is damaged (${causeOf(thrown)})`);
    else problems.push(`${name}: ${path} has no private key in PEM form (-----BEGIN PRIVATE KEY-----)`);
    return null;
  }
}

/** An authority that is out of date verifies nobody: every client would be turned away. One that is in date is enough. */
function checkAuthorities(name: string, path: string, authorities: readonly X509Certificate[], problems: string[]): void {
  const nowMs = Date.now();
  const [first] = authorities;
  if (first === undefined || authorities.some(({ validFrom, validTo }) => Date.parse(validFrom) <= nowMs && nowMs <= Date.parse(validTo))) return;
  const { validFrom, validTo } = first;
  const when = Date.parse(validTo) < nowMs ? `expired on ${validTo}` : `is valid from ${validFrom} on`;
  problems.push(`${name}: the authority in ${path} ${when}; no certificate of a client could be verified`);
}

/** What is left for the library to dislike: a key too short for its taste, an algorithm that it does not know. */
function checkAccepted({ certFile, keyFile, clientCaFile }: TlsFiles, problems: string[]): void {
  try {
    const ca = clientCaFile === null ? {} : { ca: readFileSync(clientCaFile) };
    createSecureContext({ cert: readFileSync(certFile), key: readFileSync(keyFile), ...ca });
  } catch (thrown) {
    problems.push(`FENCEGATE_TLS_CERT: ${certFile} cannot be used with its key for TLS (${causeOf(thrown)})`);
  }
}

function textOf(name: string, path: string, problems: string[]): string | null {
  try {
    return readFileSync(path, 'latin1');
  } catch (thrown) {
    problems.push(`${name}: ${path} cannot be read (${causeOf(thrown)})`);
    return null;
  }
}

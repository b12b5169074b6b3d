import { parseDictionary } from 'structured-headers';
import { refuse } from '../domain/errors.ts';

/** SHA-2 digests by name, lower-case hex. */
export interface Digests {
  sha256?: string;
  sha512?: string;
}

const SHA256_BYTES = 32;
const SHA512_BYTES = 64;

/** Reads `Content-Digest` or `Repr-Digest` (RFC 9530). Unknown algorithms are ignored; a malformed field is `invalid_request`. */
export function digestsOf(value: string | undefined, name: string): Digests {
  const digests: Digests = {};
  if (value === undefined) return digests;
  for (const [algorithm, item] of dictionaryOf(value, name)) {
    if (algorithm === 'sha-256') digests.sha256 = hexOf(item[0], SHA256_BYTES, name);
    if (algorithm === 'sha-512') digests.sha512 = hexOf(item[0], SHA512_BYTES, name);
  }
  return digests;
}

function dictionaryOf(value: string, name: string): ReturnType<typeof parseDictionary> {
  try {
    return parseDictionary(value);
  } catch {
    throw refuse('invalid_request', `${name} is not a structured dictionary, as in sha-256=:base64:.`);
  }
}

function hexOf(item: unknown, bytes: number, name: string): string {
  if (!(item instanceof ArrayBuffer) || item.byteLength !== bytes)
    throw refuse('invalid_request', `${name} does not hold a digest of ${bytes} bytes.`);
  return Buffer.from(item).toString('hex');
}

/** `sha-256=:base64:`, as an answer carries it. */
export function digestField(sha256Hex: string): string {
  return `sha-256=:${Buffer.from(sha256Hex, 'hex').toString('base64')}:`;
}

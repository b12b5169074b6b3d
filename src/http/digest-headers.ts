import { createHash, type Hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { parseDictionary } from 'structured-headers';
import { type GatewayError, refuse } from '../domain/errors.ts';
import type { ExpectedDigests } from '../domain/write.ts';
import { announcesBody } from './exchange.ts';

/** SHA-2 digests by name, lower-case hex. */
export interface Digests {
  sha256?: string;
  sha512?: string;
}

const SHA256_BYTES = 32;
const SHA512_BYTES = 64;

/** What a request says about its bytes. A field in several lines is one dictionary. Throws `invalid_request`. */
export function announcedDigests({ headers }: IncomingMessage): ExpectedDigests {
  return {
    content: digestsOf([headers['content-digest'] ?? []].flat().join(', '), 'Content-Digest'),
    representation: digestsOf([headers['repr-digest'] ?? []].flat().join(', '), 'Repr-Digest'),
  };
}

/**
 * Passes content on and throws `digest_mismatch` at its end when it is not what was announced. For requests whose content is not the file:
 * what they enclose describes something else than their target, so `Repr-Digest` is of the same bytes as `Content-Digest` (RFC 9530, 3.1).
 */
export async function* judged(content: AsyncIterable<Uint8Array>, announced: ExpectedDigests): AsyncGenerator<Uint8Array> {
  const judge = new DigestJudge(announced);
  for await (const chunk of content) {
    judge.update(chunk);
    yield chunk;
  }
  judge.assertEqual();
}

/** The same for a request that has no content. One that has some all the same is not read, so its digests cannot be judged: `invalid_request`. */
export function judgeNoContent(request: IncomingMessage): void {
  const judge = new DigestJudge(announcedDigests(request));
  if (judge.isIdle) return;
  if (announcesBody(request)) throw refuse('invalid_request', 'A body means nothing here and is not read; send none, or no digest of it.');
  judge.assertEqual();
}

class DigestJudge {
  readonly #expected: { readonly hash: Hash; readonly hex: string }[] = [];

  constructor({ content, representation }: ExpectedDigests) {
    for (const { sha256, sha512 } of [content, representation]) {
      if (sha256 !== undefined) this.#expected.push({ hash: createHash('sha256'), hex: sha256 });
      if (sha512 !== undefined) this.#expected.push({ hash: createHash('sha512'), hex: sha512 });
    }
  }

  /** Nothing was announced that is known here. */
  get isIdle(): boolean {
    return this.#expected.length === 0;
  }

  update(chunk: Uint8Array): void {
    for (const { hash } of this.#expected) hash.update(chunk);
  }

  assertEqual(): void {
    if (this.#expected.some(({ hash, hex }) => hash.digest('hex') !== hex)) throw mismatch();
  }
}

export function mismatch(): GatewayError {
  return refuse('digest_mismatch', 'The content that arrived does not have the announced digest.');
}

/** Reads `Content-Digest` or `Repr-Digest` (RFC 9530). Unknown algorithms are ignored; a malformed field is `invalid_request`. */
export function digestsOf(value: string, name: string): Digests {
  const digests: Digests = {};
  if (value === '') return digests;
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

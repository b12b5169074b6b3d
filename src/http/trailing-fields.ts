import { createHash, type Hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { refuse } from '../domain/errors.ts';
import { type Digests, digestsOf, mismatch } from './digest-headers.ts';
import { EnclosingHeaders, PatchHeaders } from './schemas/files.ts';

/** A client that makes its content while it sends it knows the digest only at the end (RFC 9530, section 3; trap 2d). */
const DIGESTS = ['content-digest', 'repr-digest'] as const;
type DigestField = (typeof DIGESTS)[number];

/** What decides about a write is read before its content; in a trailer it would be passed over, and the write done without it (RFC 9110, 6.5.1). */
const HEADERS_ONLY: ReadonlySet<string> = new Set(
  ['Authorization', 'Content-Range', ...Object.keys(EnclosingHeaders.properties), ...Object.keys(PatchHeaders.properties)]
    .map((name) => name.toLowerCase())
    .filter((name) => !isDigest(name)),
);

/** The fields behind the content of one request. */
export class TrailingFields {
  readonly #request: IncomingMessage;
  readonly #hashes: { readonly sha256: Hash; readonly sha512: Hash } | null;

  /** Throws `invalid_request` when `Trailer` announces what must stand in front. */
  constructor(request: IncomingMessage) {
    this.#request = request;
    const announced = announcedNames(request);
    assertNames(announced);
    if (request.method === 'PATCH' && announced.includes('repr-digest')) throw reprOfRange();
    this.#hashes = announced.some(isDigest) ? { sha256: createHash('sha256'), sha512: createHash('sha512') } : null;
  }

  update(chunk: Uint8Array): void {
    this.#hashes?.sha256.update(chunk);
    this.#hashes?.sha512.update(chunk);
  }

  /** All of the content has arrived. Throws `digest_mismatch`, or `invalid_request` for a field that was not announced or must stand in front. */
  assertEqual(): void {
    const { trailers, method } = this.#request;
    const names = Object.keys(trailers);
    assertNames(names);
    const sent = DIGESTS.filter((name) => names.includes(name));
    if (sent.length === 0) return;
    if (this.#hashes === null)
      throw refuse('invalid_request', 'A digest behind the content must be announced by Trailer, or nothing is there to compare.');
    if (method === 'PATCH' && sent.includes('repr-digest')) throw reprOfRange();
    const arrived = { sha256: this.#hashes.sha256.digest('hex'), sha512: this.#hashes.sha512.digest('hex') };
    for (const name of sent) if (!isSame(digestsOf(trailers[name] ?? '', name), arrived)) throw mismatch();
  }
}

function isDigest(name: string): name is DigestField {
  return (DIGESTS as readonly string[]).includes(name);
}

function announcedNames({ headers }: IncomingMessage): string[] {
  return (headers.trailer ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '');
}

function assertNames(names: readonly string[]): void {
  const early = names.find((name) => HEADERS_ONLY.has(name));
  if (early !== undefined) throw refuse('invalid_request', `${early} must stand before the content, not in a trailer.`);
}

function reprOfRange(): Error {
  return refuse('invalid_request', 'The Repr-Digest of a PATCH is of the whole file; send it before the content.');
}

function isSame({ sha256, sha512 }: Digests, arrived: Required<Digests>): boolean {
  return (sha256 ?? arrived.sha256) === arrived.sha256 && (sha512 ?? arrived.sha512) === arrived.sha512;
}

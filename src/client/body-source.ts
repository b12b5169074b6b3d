import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { wrongKind } from './call-checks.ts';

/**
 * What a write sends: text (UTF-8), bytes, a file of this machine, a stream of Node or of the web, anything that yields bytes, or a
 * function that makes one of these streams anew for each attempt (only then can a stream be sent again).
 */
export type FileBody = string | Uint8Array | LocalFile | ByteStream | (() => ByteStream);

export interface LocalFile {
  readonly path: string;
}

export type ByteStream = Readable | AsyncIterable<Uint8Array | string> | ReadableStream<Uint8Array>;

const BODY = 'text, bytes (Uint8Array), { path }, a stream, or a function that makes a stream';

/** A body made ready: its length when it is known, and its bytes as often as they can be had. */
export interface BodySource {
  readonly sizeBytes: number | null;
  /** Whether `open` may be called now. */
  readonly available: () => boolean;
  readonly open: () => AsyncIterable<Uint8Array>;
  /** The same bytes come each time, as far as this process can know. */
  readonly isFixed: boolean;
}

/** Hashed in pieces, so that heartbeats are sent meanwhile. */
const PIECE_BYTES = 1_048_576;

/** Of what a fixed source yields. */
export async function sha256Of(source: BodySource): Promise<Buffer> {
  const hash = createHash('sha256');
  for await (const chunk of source.open()) {
    for (let from = 0; from < chunk.byteLength; from += PIECE_BYTES) {
      hash.update(chunk.subarray(from, from + PIECE_BYTES));
      if (chunk.byteLength > PIECE_BYTES) await turn();
    }
  }
  return hash.digest();
}

/** `sizeBytes` is for streams, which do not know their length; without it they are sent in chunks. Rejects with `TypeError` for what is no body, and when a local file is not there. */
export async function bodySource(body: FileBody, sizeBytes?: number): Promise<BodySource> {
  if (typeof body === 'string') return bytesSource(Buffer.from(body));
  if (body instanceof Uint8Array) return bytesSource(body);
  if (typeof body === 'function')
    return { sizeBytes: sizeBytes ?? null, available: () => true, open: () => checked(body(), sizeBytes), isFixed: false };
  if (typeof body !== 'object' || body === null || ArrayBuffer.isView(body)) throw wrongKind('body', BODY, body);
  if ('path' in body && typeof body.path === 'string' && !(Symbol.asyncIterator in body)) return localSource(body.path);
  if (!isIterable(body)) throw wrongKind('body', BODY, body);
  return streamSource(body as ByteStream, sizeBytes);
}

function isIterable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && (Symbol.asyncIterator in value || Symbol.iterator in value);
}

function bytesSource(bytes: Uint8Array): BodySource {
  async function* open(): AsyncGenerator<Uint8Array> {
    if (bytes.byteLength > 0) yield bytes;
  }
  return { sizeBytes: bytes.byteLength, available: () => true, open, isFixed: true };
}

async function localSource(path: string): Promise<BodySource> {
  const { size } = await stat(path);
  // A file that grows meanwhile is sent as long as it was.
  const open = (): AsyncIterable<Uint8Array> =>
    size === 0 ? bytesSource(new Uint8Array()).open() : checked(createReadStream(path, { end: size - 1 }), size);
  return { sizeBytes: size, available: () => true, open, isFixed: true };
}

function streamSource(stream: ByteStream, sizeBytes: number | undefined): BodySource {
  let used = false;
  const open = (): AsyncIterable<Uint8Array> => {
    used = true;
    return checked(stream, sizeBytes);
  };
  return { sizeBytes: sizeBytes ?? null, available: () => !used, open, isFixed: false };
}

/** A length that is promised is kept: neither a byte more nor one less is sent as if it were whole. */
async function* checked(stream: ByteStream, sizeBytes: number | undefined): AsyncGenerator<Uint8Array> {
  let sent = 0;
  if (!isIterable(stream)) throw wrongKind('what the function of a body makes', 'a stream', stream);
  for await (const chunk of stream as AsyncIterable<Uint8Array | string>) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    if (!(bytes instanceof Uint8Array)) throw wrongKind('what a body yields', 'text or bytes (Uint8Array)', bytes);
    sent += bytes.byteLength;
    if (sizeBytes !== undefined && sent > sizeBytes) throw new RangeError(`the body has more than the ${sizeBytes} bytes that were promised`);
    yield bytes;
  }
  if (sizeBytes !== undefined && sent < sizeBytes) throw new RangeError(`the body ended after ${sent} of ${sizeBytes} bytes`);
}

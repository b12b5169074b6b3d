import { Readable } from 'node:stream';
import type { OpenedFile } from '../domain/volume.ts';
import type { ByteRange } from './byte-ranges.ts';

/** The bytes of an answer and how many they are. */
export interface Payload {
  readonly headers: Readonly<Record<string, string>>;
  readonly lengthBytes: number;
  readonly chunks: (signal: AbortSignal) => AsyncIterable<Uint8Array>;
}

export function wholeFile(file: OpenedFile): Payload {
  const size = file.facts.sizeBytes;
  return { headers: {}, lengthBytes: size, chunks: (signal) => file.read(0, size, signal) };
}

export function oneRange(file: OpenedFile, { start, end }: ByteRange): Payload {
  return {
    headers: { 'content-range': contentRange(start, end, file.facts.sizeBytes) },
    lengthBytes: end - start,
    chunks: (signal) => file.read(start, end, signal),
  };
}

/** `multipart/byteranges` (RFC 9110, 14.6); all parts come from the one descriptor, so versions are never mixed. */
export function severalRanges(file: OpenedFile, ranges: readonly ByteRange[], mediaType: string, boundary: string): Payload {
  const size = file.facts.sizeBytes;
  const heads = ranges.map(
    ({ start, end }) => `\r\n--${boundary}\r\ncontent-type: ${mediaType}\r\ncontent-range: ${contentRange(start, end, size)}\r\n\r\n`,
  );
  const tail = `\r\n--${boundary}--\r\n`;
  const framing = [...heads, tail].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  return {
    headers: { 'content-type': `multipart/byteranges; boundary=${boundary}` },
    lengthBytes: ranges.reduce((sum, { start, end }) => sum + end - start, framing),
    chunks: async function* (signal) {
      for (const [i, { start, end }] of ranges.entries()) {
        yield Buffer.from(heads[i] ?? '');
        yield* file.read(start, end, signal);
      }
      yield Buffer.from(tail);
    },
  };
}

function contentRange(start: number, end: number, size: number): string {
  return `bytes ${start}-${end - 1}/${size}`;
}

/** A stream that closes the descriptor in every case: read to the end, failed, left early, or never read at all. */
export function payloadStream(file: OpenedFile, chunks: AsyncIterable<Uint8Array>, onCloseError: (error: unknown) => void): Readable {
  const stream = Readable.from(chunks, { objectMode: false });
  // Not a `finally` in a generator: one that was never started does not run it.
  stream.once('close', () => void file.close().catch(onCloseError));
  return stream;
}

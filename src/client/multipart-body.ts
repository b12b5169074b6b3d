import { randomUUID } from 'node:crypto';
import { type BodySource, bodySource, type FileBody } from './body-source.ts';

export interface UploadFile {
  /** One plain name, without a slash. */
  readonly name: string;
  readonly body: FileBody;
  /** For a stream whose length is known. */
  readonly sizeBytes?: number;
}

interface Part {
  readonly head: Uint8Array;
  readonly source: BodySource;
}

const TAIL = Buffer.from('\r\n');

/** Several files as one multipart/form-data body (RFC 7578); of known length when all of them are. */
export async function multipartBody(files: readonly UploadFile[]): Promise<{ readonly contentType: string; readonly source: BodySource }> {
  const boundary = `fencegate-${randomUUID()}`;
  const parts = await Promise.all(
    files.map(async (file): Promise<Part> => ({ head: headOf(file.name, boundary), source: await bodySource(file.body, file.sizeBytes) })),
  );
  const end = Buffer.from(`--${boundary}--\r\n`);
  const sizes = parts.map(({ head, source }) => (source.sizeBytes === null ? null : head.byteLength + source.sizeBytes + TAIL.byteLength));
  const sizeBytes = sizes.reduce<number | null>((sum, size) => (sum === null || size === null ? null : sum + size), end.byteLength);
  async function* open(): AsyncGenerator<Uint8Array> {
    for (const { head, source } of parts) {
      yield head;
      yield* source.open();
      yield TAIL;
    }
    yield end;
  }
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    source: { sizeBytes, available: () => parts.every(({ source }) => source.available()), open },
  };
}

/** A name that could end its quotes is escaped; line breaks are, too, so that the gateway sees and refuses them. */
function headOf(name: string, boundary: string): Uint8Array {
  const quoted = name.replace(/["\\]/g, '\\$&').replace(/\r/g, '%0D').replace(/\n/g, '%0A');
  return Buffer.from(
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${quoted}"\r\nContent-Type: application/octet-stream\r\n\r\n`,
  );
}

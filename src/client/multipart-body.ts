import { createHash, randomUUID } from 'node:crypto';
import { type BodySource, bodySource, type FileBody, sha256Of } from './body-source.ts';

export interface UploadFile {
  /** One plain name, without a slash. */
  readonly name: string;
  readonly body: FileBody;
  /** For a stream whose length is known. */
  readonly sizeBytes?: number;
}

const TAIL = Buffer.from('\r\n');
/** As many as 128 bits have; a boundary has 70 characters at most. */
const BOUNDARY_DIGITS = 32;

/**
 * Several files as one multipart/form-data body (RFC 7578); of known length when all of them are. `sameAgain`: the same files make the same
 * body again, where their bytes are at hand.
 */
export async function multipartBody(
  files: readonly UploadFile[],
  sameAgain = false,
): Promise<{ readonly contentType: string; readonly source: BodySource }> {
  const bodies = await Promise.all(files.map(async ({ name, body, sizeBytes }) => ({ name, source: await bodySource(body, sizeBytes) })));
  const isFixed = sameAgain && bodies.every(({ source }) => source.isFixed);
  const boundary = `fencegate-${isFixed ? await nameOf(bodies) : randomUUID()}`;
  const parts = bodies.map(({ name, source }) => ({ head: headOf(name, boundary), source }));
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
    source: { sizeBytes, available: () => parts.every(({ source }) => source.available()), open, isFixed },
  };
}

/** Of what is in the files: none of them can have it in itself but by chance. */
async function nameOf(bodies: readonly { readonly name: string; readonly source: BodySource }[]): Promise<string> {
  const hash = createHash('sha256');
  for (const { name, source } of bodies) hash.update(JSON.stringify([name, (await sha256Of(source)).toString('hex')]));
  return hash.digest('hex').slice(0, BOUNDARY_DIGITS);
}

/** A name that could end its quotes is escaped; line breaks are, too, so that the gateway sees and refuses them. */
function headOf(name: string, boundary: string): Uint8Array {
  const quoted = name.replace(/["\\]/g, '\\$&').replace(/\r/g, '%0D').replace(/\n/g, '%0A');
  return Buffer.from(
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${quoted}"\r\nContent-Type: application/octet-stream\r\n\r\n`,
  );
}

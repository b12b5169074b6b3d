import { Readable } from 'node:stream';
import type { MultipartFile } from '@fastify/multipart';
import type { FastifyRequest } from 'fastify';
import type { Clock, Timer } from '../domain/clock.ts';
import { refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import type { ExpectedDigests, UploadBody, UploadPart } from '../domain/write.ts';
import { announcedDigests, judged } from './digest-headers.ts';
import { boundaryOf, wellDelimited } from './form-delimiters.ts';
import { fromFramework } from './framework-error.ts';
import type { RequestBody } from './request-body.ts';

/**
 * The files of a multipart/form-data body. The parser is fed from `RequestBody`, so that length, idle and rate limits and a cut
 * connection are judged in one place. The iteration ends normally only after the closing delimiter, when the whole body has arrived and
 * has the digests that were announced.
 */
export class MultipartUpload implements UploadBody {
  readonly declaredBytes: number | null;
  readonly #request: FastifyRequest;
  readonly #body: RequestBody;
  readonly #clock: Clock;
  readonly #fileBytesMax: number;
  readonly #digests: ExpectedDigests;

  /** Throws `invalid_request` for a digest field that cannot be read. */
  constructor(request: FastifyRequest, body: RequestBody, clock: Clock, fileBytesMax: number | null) {
    this.#request = request;
    this.#body = body;
    this.#digests = announcedDigests(request.raw);
    this.#clock = clock;
    this.#fileBytesMax = fileBytesMax ?? Number.MAX_SAFE_INTEGER;
    this.declaredBytes = body.declaredBytes;
  }

  open(): AsyncIterable<UploadPart> {
    return this.#parts();
  }

  async *#parts(): AsyncGenerator<UploadPart> {
    const boundary = boundaryOf(this.#request.headers['content-type']);
    const whole = judged(this.#body.open(), this.#digests);
    const source = Readable.from(boundary === null ? whole : wellDelimited(whole, boundary), { objectMode: false });
    const silence = new Silence(source, this.#clock);
    const parts = this.#parse(source)[Symbol.asyncIterator]();
    let files = 0;
    try {
      for (;;) {
        const { done, value: part } = await silence.bounded(parts.next());
        if (done === true) break;
        if (part.type !== 'file') throw refuse('invalid_request', 'Every part of the form must be a file with a file name.');
        // What the parser makes of bytes that are no UTF-8: several such names would be one, and none of them the client's.
        if (part.filename?.includes('\ufffd') === true) throw refuse('invalid_path', 'A file name of the form is not valid UTF-8.');
        files += 1;
        yield { filename: part.filename, body: fileBytes(part, silence) };
      }
      // The parser reads what follows the closing delimiter, too (RFC 2046, 5.1.1). Were it to stop before the end, nobody would have judged the digests.
      if (!source.readableEnded) throw refuse('invalid_request', 'The multipart body goes on after its end.');
    } catch (error) {
      throw fromForm(error);
    } finally {
      source.destroy();
    }
    if (files === 0) throw refuse('invalid_request', 'The form has no file.');
  }

  /** The plugin reads `request.raw`; it is handed our stream in the place of the socket's. */
  #parse(source: Readable): ReturnType<FastifyRequest['parts']> {
    const raw = Object.assign(source, { headers: this.#request.raw.headers });
    const fed: FastifyRequest = Object.create(this.#request, { raw: { value: raw } });
    return fed.parts({
      limits: { files: LIMITS.multipartFilesMax, fields: 1, parts: LIMITS.multipartFilesMax + 1, fileSize: this.#fileBytesMax },
      preservePath: true,
    });
  }
}

async function* fileBytes(part: MultipartFile, silence: Silence): AsyncGenerator<Uint8Array> {
  const chunks: AsyncIterator<Uint8Array> = part.file.iterator({ destroyOnReturn: false });
  try {
    for (;;) {
      const { done, value } = await silence.bounded(chunks.next());
      if (done === true) break;
      yield value;
    }
  } catch (error) {
    throw fromForm(error);
  }
  // The parser cuts a file at its limit and ends the stream as if all were well (case B17).
  if (part.file.truncated) throw refuse('body_too_large', 'One file of the upload is over the limit of the gateway.');
}

/** What the multipart parser itself complains about is the client's form; its errors have no code. */
function fromForm(thrown: unknown): Error {
  const error = fromFramework(thrown);
  return error.code === 'internal' ? refuse('invalid_request', 'The multipart body is malformed.') : error;
}

/**
 * Some malformed bodies make the parser fall silent: no part, no end, no error (case B19). Once the last byte was handed over,
 * each wait for it is bounded.
 */
class Silence {
  readonly #clock: Clock;
  #over = false;
  #timer: Timer | undefined;
  #reject: ((error: Error) => void) | undefined;

  constructor(source: Readable, clock: Clock) {
    this.#clock = clock;
    source.once('end', () => {
      this.#over = true;
      this.#arm();
    });
  }

  /** One wait at a time: the parts of a form come one after the other. */
  async bounded<T>(wait: Promise<T>): Promise<T> {
    const silent = new Promise<never>((_, reject) => {
      this.#reject = reject;
    });
    if (this.#over) this.#arm();
    try {
      return await Promise.race([wait, silent]);
    } finally {
      this.#timer?.cancel();
      this.#reject = undefined;
    }
  }

  #arm(): void {
    const reject = this.#reject;
    if (reject === undefined) return;
    this.#timer?.cancel();
    this.#timer = this.#clock.after(LIMITS.multipartSettleMs, () =>
      reject(refuse('invalid_request', 'The multipart body has no closing delimiter.')),
    );
  }
}

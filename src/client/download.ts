import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { OpenAnswer, Transport } from './transport.ts';
import type { Progress } from './upload-exchange.ts';

/**
 * A file on its way here. The head is known; the bytes are taken once, by one of `bytes`, `text`, `stream`, `saveTo`, or by iterating.
 * Whoever wants none of them calls `cancel`.
 */
export class FileDownload implements AsyncIterable<Uint8Array> {
  /** 200 for the whole file, 206 for a range, 304 when `ifNoneMatch` names what is there: then there are no bytes. */
  readonly status: number;
  /** Quotes included. Begins with `W/` when somebody else changed the file less than 2 s ago. */
  readonly etag: string;
  /** Of what comes, which for a range is less than the file. `null` when not known. */
  readonly sizeBytes: number | null;
  /** By the extension of the name. */
  readonly contentType: string | null;
  /** As an HTTP date. */
  readonly lastModified: string | null;
  /** `bytes 0-9/100`; `null` for the whole file. */
  readonly contentRange: string | null;
  readonly #answer: OpenAnswer;
  readonly #transport: Pick<Transport, 'broken'>;
  readonly #signal: AbortSignal | undefined;
  readonly #onProgress: ((progress: Progress) => void) | undefined;

  constructor(
    answer: OpenAnswer,
    transport: Pick<Transport, 'broken'>,
    options: { readonly signal?: AbortSignal | undefined; readonly onProgress?: ((progress: Progress) => void) | undefined },
  ) {
    const { headers, status } = answer.response;
    const length = headers.get('content-length');
    this.#answer = answer;
    this.#transport = transport;
    this.#signal = options.signal;
    this.#onProgress = options.onProgress;
    this.status = status;
    this.etag = headers.get('etag') ?? '';
    this.sizeBytes = length === null ? null : Number(length);
    this.contentType = headers.get('content-type');
    this.lastModified = headers.get('last-modified');
    this.contentRange = headers.get('content-range');
  }

  /**
   * All bytes, in memory. Rejects with `gateway_unreachable` (`bytes_received`) when they did not all come.
   *
   * @example
   * const download = await client.get('scans/0001.tif');
   * const whole = await download.bytes();
   * console.log(whole.byteLength, download.etag);
   */
  async bytes(): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of this) chunks.push(chunk);
    return Buffer.concat(chunks);
  }

  /**
   * The same as UTF-8 text. Rejects as `bytes` does.
   *
   * @example
   * const text = await (await client.get('ledger/q3.csv')).text();
   */
  async text(): Promise<string> {
    return Buffer.from(await this.bytes()).toString('utf8');
  }

  /**
   * The same as a stream of Node, which fails as `bytes` rejects.
   *
   * @example
   * const download = await client.get('scans/0001.tif');
   * for await (const chunk of download.stream()) console.log(chunk.length);
   */
  stream(): Readable {
    return Readable.from(this, { objectMode: false });
  }

  /**
   * Writes a file of this machine, replacing it. Rejects as `bytes` does, or with the error of the file system, whose `path` is this file; the file is
   * then incomplete.
   *
   * @example
   * const download = await client.get('scans/0001.tif');
   * await download.saveTo('/tmp/scan.tif');
   */
  async saveTo(path: string): Promise<void> {
    const file = createWriteStream(path);
    const failures: unknown[] = [];
    file.on('error', (error) => failures.push(error));
    try {
      await pipeline(this.stream(), file, this.#signal === undefined ? {} : { signal: this.#signal });
    } catch (thrown) {
      // A write that fails, as on a disk that is full, does not say of which file.
      if (thrown instanceof Error && failures.includes(thrown) && !('path' in thrown)) Object.assign(thrown, { path });
      throw thrown;
    }
  }

  /**
   * Drops the connection. Nothing more comes. Throws nothing, and may be called again.
   *
   * @example
   * const download = await client.get('scans/0001.tif');
   * if (download.sizeBytes !== null && download.sizeBytes > 1_000_000_000) download.cancel();
   * else await download.saveTo('/tmp/scan.tif');
   */
  cancel(): void {
    this.#answer.done();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    const { body } = this.#answer.response;
    let transferredBytes = 0;
    try {
      for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
        transferredBytes += chunk.byteLength;
        this.#onProgress?.({ transferredBytes, totalBytes: this.sizeBytes });
        yield chunk;
      }
    } catch (thrown) {
      throw this.#transport.broken(thrown, this.#signal, { bytes_received: transferredBytes });
    } finally {
      this.#answer.done();
    }
  }
}

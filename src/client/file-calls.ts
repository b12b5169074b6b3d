import type { FileBody } from './body-source.ts';
import { checkOptions, text, wholeNumber } from './call-checks.ts';
import type { Cancellable } from './client-options.ts';
import type { Entry } from './contract/answers.ts';
import type { FileDownload } from './download.ts';
import type { FileReads, GetOptions } from './file-reads.ts';
import type { FileWrites } from './file-writes.ts';
import type { LeaseDesk } from './lease-desk.ts';
import type { UploadFile } from './multipart-body.ts';
import {
  APPEND_OPTIONS,
  BODY_OPTIONS,
  CANCELLABLE,
  checkFiles,
  GET_OPTIONS,
  PUT_OPTIONS,
  TRANSFER_OPTIONS,
  UPLOAD_OPTIONS,
  WRITE_OPTIONS,
} from './option-checks.ts';
import { directoryName } from './resource-path.ts';
import type {
  AppendOptions,
  BodyOptions,
  PutOptions,
  TransferOptions,
  UploadOptions,
  UploadResult,
  WriteOptions,
  WriteReceipt,
  WriteResult,
} from './write-options.ts';
import type { WriteRight } from './write-right.ts';

interface FileCallsParts {
  readonly writes: FileWrites;
  readonly reads: FileReads;
  readonly leases: LeaseDesk;
}

/** What a client does with files. Writes go under the lease of the running code, when it has one over them. */
export class FileCalls {
  readonly #parts: FileCallsParts;

  constructor(parts: FileCallsParts) {
    this.#parts = parts;
  }

  /**
   * Creates or replaces a whole file. Without a lease of the running code, the gateway takes one for this request. Rejects as `LeaseHandle.put`
   * does, and with `resource_locked` when somebody holds the file for longer than the wait (5 000 ms).
   *
   * @example
   * const { etag, size_bytes: sizeBytes } = await client.put('ledger/q3.csv', 'a,1\n');
   * await client.put('ledger/q3.csv', bytes, { ifMatch: etag });
   */
  async put(resource: string, body: FileBody, options: PutOptions = {}): Promise<WriteResult> {
    text(resource, 'resource');
    checkOptions(options, PUT_OPTIONS);
    return this.#parts.writes.put(resource, body, options, this.#parts.leases.rightFor(resource));
  }

  /**
   * Appends; a missing file is made. Rejects as `LeaseHandle.append` does, and with `resource_locked`.
   *
   * @example
   * const { size_bytes: endBytes } = await client.append('ledger/journal.log', 'opened\n');
   * await client.append('ledger/journal.log', 'closed\n', { offset: endBytes });
   */
  async append(resource: string, body: FileBody, options: AppendOptions = {}): Promise<WriteResult> {
    text(resource, 'resource');
    checkOptions(options, APPEND_OPTIONS);
    return this.#parts.writes.append(resource, body, options, this.#parts.leases.rightFor(resource));
  }

  /**
   * Writes over a part of a file, from byte `startBytes` on. Rejects as `LeaseHandle.writeRange` does, and with `resource_locked`.
   *
   * @example
   * await client.writeRange('accounts/records.dat', 64 * 17, record);
   */
  async writeRange(resource: string, startBytes: number, body: FileBody, options: BodyOptions = {}): Promise<WriteResult> {
    text(resource, 'resource');
    wholeNumber(startBytes, 'startBytes');
    checkOptions(options, BODY_OPTIONS);
    return this.#parts.writes.writeRange(resource, startBytes, body, options, this.#parts.leases.rightFor(resource));
  }

  /**
   * Deletes a file, or an empty directory when the name ends with a slash. Rejects as `LeaseHandle.delete` does, and with `resource_locked`.
   *
   * @example
   * const { operation_id: operationId } = await client.delete('scans/0001.tif');
   */
  async delete(resource: string, options: WriteOptions = {}): Promise<WriteReceipt> {
    text(resource, 'resource');
    checkOptions(options, WRITE_OPTIONS);
    return this.#parts.writes.delete(resource, options, this.#parts.leases.rightFor(resource));
  }

  /**
   * Moves a file within its volume. Rejects as `LeaseHandle.move` does, and with `resource_locked`.
   *
   * @example
   * await client.move('ledger/a.csv', 'ledger/b.csv', { overwrite: true });
   */
  async move(from: string, to: string, options: TransferOptions = {}): Promise<WriteResult> {
    text(from, 'from');
    text(to, 'to');
    checkOptions(options, TRANSFER_OPTIONS);
    return this.#parts.writes.transfer('moves', from, to, options, this.#rightsFor(from, to));
  }

  /**
   * Copies a file, also to another volume. Rejects as `LeaseHandle.copy` does, and with `resource_locked`.
   *
   * @example
   * await client.copy('ledger/a.csv', 'ledger/copy-of-a.csv', { overwrite: true });
   */
  async copy(from: string, to: string, options: TransferOptions = {}): Promise<WriteResult> {
    text(from, 'from');
    text(to, 'to');
    checkOptions(options, TRANSFER_OPTIONS);
    return this.#parts.writes.transfer('copies', from, to, options, this.#rightsFor(from, to));
  }

  /**
   * Makes a directory, and its missing parents; one that is there is no error. Rejects with `not_a_directory`, `volume_read_only`.
   *
   * @example
   * await client.makeDirectory('ledger/2026/q3/');
   */
  async makeDirectory(directory: string, options: WriteOptions = {}): Promise<WriteReceipt> {
    text(directory, 'directory');
    checkOptions(options, WRITE_OPTIONS);
    return this.#parts.writes.makeDirectory(directory, options, null);
  }

  /**
   * Uploads several files into a directory, all or nothing; the directory is made. Rejects as `LeaseHandle.upload` does, and with `resource_locked`.
   *
   * @example
   * const { files } = await client.upload('ledger/q3/', [{ name: 'a.csv', body: a }, { name: 'b.csv', body: b }]);
   */
  async upload(directory: string, files: readonly UploadFile[], options: UploadOptions = {}): Promise<UploadResult> {
    text(directory, 'directory');
    checkFiles(files);
    checkOptions(options, UPLOAD_OPTIONS);
    return this.#parts.writes.upload(
      directory,
      files,
      options,
      this.#rightsFor(...files.map(({ name }) => `${directoryName(directory)}${name}`))[0] ?? null,
    );
  }

  /**
   * Reads a file, or a range of it. Rejects with `not_found`, `is_a_directory`, `range_not_satisfiable`, `precondition_failed`.
   *
   * @example
   * const download = await client.get('scans/0001.tif', { onProgress: ({ transferredBytes }) => draw(transferredBytes) });
   * await download.saveTo('/tmp/scan.tif');
   */
  async get(resource: string, options: GetOptions = {}): Promise<FileDownload> {
    text(resource, 'resource');
    checkOptions(options, GET_OPTIONS);
    return this.#parts.reads.get(resource, options);
  }

  /**
   * The entries of a directory, over all pages. Rejects with `not_found`, `not_a_directory`.
   *
   * @example
   * for await (const { name, size_bytes } of client.list('ledger/')) console.log(name, size_bytes);
   */
  list(directory: string, options: Cancellable = {}): AsyncIterable<Entry> {
    text(directory, 'directory');
    checkOptions(options, CANCELLABLE);
    return this.#parts.reads.list(directory, options.signal);
  }

  #rightsFor(...resources: readonly string[]): readonly WriteRight[] {
    return resources.map((resource) => this.#parts.leases.rightFor(resource)).filter((right) => right !== null);
  }
}

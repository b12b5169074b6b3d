import type { FileBody } from './body-source.ts';
import { type Checks, callable, checkOptions, leaseMode, text, wholeNumber, wrongKind } from './call-checks.ts';
import type { Cancellable } from './client-options.ts';
import type { LeaseMode } from './contract/answers.ts';
import type { FileWrites } from './file-writes.ts';
import type { HeldLeaseState } from './held-lease.ts';
import type { LeaseContext } from './lease-context.ts';
import type { ConvertOptions, LeaseStanding } from './lease-standing.ts';
import type { UploadFile } from './multipart-body.ts';
import {
  APPEND_OPTIONS,
  BODY_OPTIONS,
  CANCELLABLE,
  CONVERT_OPTIONS,
  checkFiles,
  PUT_OPTIONS,
  TRANSFER_OPTIONS,
  UPLOAD_OPTIONS,
  WRITE_OPTIONS,
} from './option-checks.ts';
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

export interface LeaseTransferOptions extends TransferOptions {
  /** The lease over the other name, when this one is only over one of them. */
  readonly otherLease?: LeaseHandle;
}

/** A lease that is held, and the writes that it allows. Every write carries its token, and none is sent once the lease is over here. */
export class LeaseHandle {
  readonly #standing: LeaseStanding;
  readonly #writes: FileWrites;
  readonly #context: LeaseContext;

  /** Made by `client.lease` and `client.withLease`. */
  constructor(standing: LeaseStanding, writes: FileWrites, context: LeaseContext) {
    this.#standing = standing;
    this.#writes = writes;
    this.#context = context;
  }

  /** The fencing token, decimal. A conversion to exclusive brings a new one. */
  get token(): string {
    return this.#standing.token;
  }

  /** What a request of somebody else's making sends as `X-Fencing-Token`: the token, or its signed form where the volume asks for that. */
  get writeToken(): string {
    return this.#standing.writeToken;
  }

  /** Secret: whoever has it can release the lease. Never log it; `leaseRef` is for that. */
  get leaseId(): string {
    return this.#standing.leaseId;
  }

  /** Names the lease to everybody else, as in the audit log; `null` for the lease of `fencegate exec`. */
  get leaseRef(): string | null {
    return this.#standing.leaseRef;
  }

  /** What it is over, `volume/path`, in canonical order. */
  get resources(): readonly string[] {
    return this.#standing.resources;
  }

  /** Changes with `convert`. */
  get mode(): LeaseMode {
    return this.#standing.mode;
  }

  /** Judged now, by the clock of this process. */
  get state(): HeldLeaseState {
    return this.#standing.state;
  }

  /** What is left to rely on without another heartbeat, ms. */
  get remainingMs(): number {
    return this.#standing.remainingMs;
  }

  /** The same with the margin, ms: when the lease ran out by the clock of this process, whatever works under it has that long to stop. */
  get keptForMs(): number {
    return this.#standing.keptForMs;
  }

  /**
   * Aborts before the lease can end, with a `FencegateError` of code `lease_lost` as its reason. A release does not abort it.
   *
   * @example
   * await convertRates(input, { signal: lease.signal });
   */
  get signal(): AbortSignal {
    return this.#standing.signal;
  }

  /**
   * Whether it is over `resource`, whatever its state. Throws nothing.
   *
   * @example
   * if (lease.covers('ledger/q3.csv')) await lease.append('ledger/q3.csv', 'b,2\n');
   */
  covers(resource: string): boolean {
    return this.#standing.covers(resource);
  }

  /**
   * Throws `lease_lost` or `lease_released` unless the lease is held now. For what is done beside the gateway, such as a payment.
   *
   * @example
   * lease.assertHeld();
   * await pay(invoice, { fencingToken: lease.token });
   */
  assertHeld(): void {
    this.#standing.assertHeld();
  }

  /**
   * Asks the gateway, once, whether the lease is held: `assertHeld` knows only what was told by then. For the end of what was done beside the gateway.
   * Rejects with `lease_lost` when it is over, `gateway_unreachable`, or the signal's reason.
   *
   * @example
   * await pay(invoice, { fencingToken: lease.token });
   * await lease.confirm();
   */
  async confirm(options: Cancellable = {}): Promise<void> {
    checkOptions(options, CANCELLABLE);
    this.#standing.assertHeld();
    await this.#standing.look(options.signal);
    this.#standing.assertHeld();
  }

  /**
   * Takes this hold off the lease; the last one ends it. Idempotent, also after a loss. Rejects with `gateway_unreachable` when it was not
   * confirmed: it is then tried again in the background.
   *
   * @example
   * const lease = await client.lease('ledger/q3.csv');
   * await lease.release();
   */
  release(): Promise<void> {
    return this.#standing.release();
  }

  /**
   * To `shared`: in place, with the same token, which then admits no writes. To `exclusive`: waits for the other readers and brings a new
   * token. Rejects with `upgrade_conflict` when another reader already waits for that, `deadlock`, `lock_not_acquired` after `waitMs` (the
   * lease stays shared), or the signal's reason.
   *
   * @example
   * await lease.convert('exclusive', { waitMs: 5_000 });
   */
  async convert(mode: LeaseMode, options: ConvertOptions = {}): Promise<void> {
    leaseMode(mode, 'mode');
    checkOptions(options, CONVERT_OPTIONS);
    return this.#standing.convert(mode, options);
  }

  /**
   * Runs `work` in the context of this lease: leases of the same resource that it takes are this one, and writes of the client to
   * its resources carry the token. `client.withLease` does this by itself. Returns what `work` returns, and throws what it throws.
   *
   * @example
   * const { fencing_token: token } = await lease.run(() => client.put('ledger/q3.csv', bytes));
   */
  run<T>(work: () => T): T {
    callable(work, 'work');
    return this.#context.run(this, work);
  }

  /**
   * Creates or replaces a whole file. Rejects with `stale_token`, `lease_ended` or `lease_lost` when the lease is over, `lease_is_shared`,
   * `precondition_failed`, `digest_mismatch`, `body_too_large`, `insufficient_storage`, ...
   *
   * @example
   * const { etag } = await lease.put('ledger/q3.csv', 'a,1\n');
   * await lease.put('scans/0001.tif', { path: '/tmp/scan.tif' }, { onProgress: ({ transferredBytes }) => draw(transferredBytes) });
   */
  async put(resource: string, body: FileBody, options: PutOptions = {}): Promise<WriteResult> {
    text(resource, 'resource');
    checkOptions(options, PUT_OPTIONS);
    return this.#writes.put(resource, body, options, this.#standing);
  }

  /**
   * Appends; a missing file is made. With `offset` (bytes) only if the file has that size, else `offset_mismatch` (`expected_offset`). Rejects as `put`
   * does.
   *
   * @example
   * await lease.append('ledger/journal.log', 'closed\n', { offset: 1_024 });
   */
  async append(resource: string, body: FileBody, options: AppendOptions = {}): Promise<WriteResult> {
    text(resource, 'resource');
    checkOptions(options, APPEND_OPTIONS);
    return this.#writes.append(resource, body, options, this.#standing);
  }

  /**
   * Writes over a part of a file, from byte `startBytes` on. Rejects with `range_not_satisfiable` when that would leave a hole, `not_found`, and as `put`
   * does.
   *
   * @example
   * await lease.writeRange('accounts/records.dat', 64 * 17, record);
   */
  async writeRange(resource: string, startBytes: number, body: FileBody, options: BodyOptions = {}): Promise<WriteResult> {
    text(resource, 'resource');
    wholeNumber(startBytes, 'startBytes');
    checkOptions(options, BODY_OPTIONS);
    return this.#writes.writeRange(resource, startBytes, body, options, this.#standing);
  }

  /**
   * Deletes a file, or an empty directory when the name ends with a slash. Rejects with `not_found`, `directory_not_empty`, and as `put` does when the lease is over.
   *
   * @example
   * await lease.delete('scans/0001.tif');
   */
  async delete(resource: string, options: WriteOptions = {}): Promise<WriteReceipt> {
    text(resource, 'resource');
    checkOptions(options, WRITE_OPTIONS);
    return this.#writes.delete(resource, options, this.#standing);
  }

  /**
   * Moves a file within its volume. The lease must be over both names, or `otherLease` over the other one. Rejects with `already_exists` without
   * `overwrite`, `cross_volume`, `same_resource`, `not_found`, and as `put` does when the lease is over.
   *
   * @example
   * const lease = await client.lease(['ledger/a.csv', 'ledger/b.csv']);
   * await lease.move('ledger/a.csv', 'ledger/b.csv', { overwrite: true });
   */
  async move(from: string, to: string, options: LeaseTransferOptions = {}): Promise<WriteResult> {
    text(from, 'from');
    text(to, 'to');
    checkOptions(options, LEASE_TRANSFER_OPTIONS);
    return this.#writes.transfer('moves', from, to, options, this.#rights(options));
  }

  /**
   * Copies a file, also to another volume; the lease must be over the new name. Rejects with `already_exists` without `overwrite`, `same_resource`,
   * `not_found`, and as `put` does when the lease is over.
   *
   * @example
   * const lease = await client.lease('ledger/b.csv');
   * await lease.copy('ledger/a.csv', 'ledger/b.csv', { overwrite: true });
   */
  async copy(from: string, to: string, options: LeaseTransferOptions = {}): Promise<WriteResult> {
    text(from, 'from');
    text(to, 'to');
    checkOptions(options, LEASE_TRANSFER_OPTIONS);
    return this.#writes.transfer('copies', from, to, options, this.#rights(options));
  }

  /**
   * Uploads several files into a directory, all or nothing. The lease must be over all of them. Rejects with `overlapping_lease`, `invalid_request` for a
   * name with a separator, and as `put` does; then nothing was changed.
   *
   * @example
   * const lease = await client.lease(['ledger/q3/a.csv', 'ledger/q3/b.csv']);
   * await lease.upload('ledger/q3/', [{ name: 'a.csv', body: a }, { name: 'b.csv', body: b }]);
   */
  async upload(directory: string, files: readonly UploadFile[], options: UploadOptions = {}): Promise<UploadResult> {
    text(directory, 'directory');
    checkFiles(files);
    checkOptions(options, UPLOAD_OPTIONS);
    return this.#writes.upload(directory, files, options, this.#standing);
  }

  /** What the client's own writes carry; not for programs. */
  get right(): WriteRight {
    return this.#standing;
  }

  #rights({ otherLease }: LeaseTransferOptions): readonly WriteRight[] {
    return otherLease === undefined ? [this.#standing] : [this.#standing, otherLease.#standing];
  }
}

const LEASE_TRANSFER_OPTIONS: Checks<LeaseTransferOptions> = {
  ...TRANSFER_OPTIONS,
  otherLease: (value, name) => {
    if (!(value instanceof LeaseHandle)) throw wrongKind(name, 'a lease of client.lease or client.withLease', value);
  },
};

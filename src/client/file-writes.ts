import { randomUUID } from 'node:crypto';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { type BodySource, bodySource, type FileBody, sha256Of } from './body-source.ts';
import type { CertificateDrops } from './certificate-drops.ts';
import { CLIENT_LIMITS } from './client-limits.ts';
import type { Transfer, WrittenFile } from './contract/answers.ts';
import { FencegateError, isFencegateError } from './errors.ts';
import { JoinedSignal } from './joined-signal.ts';
import { multipartBody, type UploadFile } from './multipart-body.ts';
import { dropsOf } from './own-fetch.ts';
import { refusalOf } from './refusal.ts';
import { directoryName, resourceUrlPath } from './resource-path.ts';
import { retrying } from './retrying.ts';
import type { Transport } from './transport.ts';
import { UploadExchange } from './upload-exchange.ts';
import type {
  AppendOptions,
  BodyOptions,
  PutOptions,
  Replay,
  TransferOptions,
  UploadOptions,
  UploadResult,
  WriteOptions,
  WriteReceipt,
  WriteResult,
} from './write-options.ts';
import type { WriteRight } from './write-right.ts';

const FILES = '/v1/files';
const OCTETS = 'application/octet-stream';
const LOCK_WAIT_MS = 5_000;

interface Upload {
  readonly method: 'PUT' | 'PATCH' | 'POST';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly source: BodySource;
  readonly options: BodyOptions;
  readonly right: WriteRight | null;
}

/** Every verb that changes a volume, with or without a lease. The right is checked by the own clock before each attempt (case R25). */
export class FileWrites {
  readonly #transport: Transport;
  readonly #agent: HttpAgent;
  readonly #drops: CertificateDrops | null;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.#agent = transport.base.startsWith('https:') ? new HttpsAgent({ keepAlive: true, ...transport.tls }) : new HttpAgent({ keepAlive: true });
    this.#drops = dropsOf(transport.tls);
  }

  async put(resource: string, body: FileBody, options: PutOptions, right: WriteRight | null): Promise<WriteResult> {
    const headers = { 'content-type': options.contentType ?? OCTETS };
    const source = await bodySource(body, options.sizeBytes);
    return this.#upload({ method: 'PUT', path: resourceUrlPath(FILES, resource), headers, source, options, right });
  }

  async append(resource: string, body: FileBody, options: AppendOptions, right: WriteRight | null): Promise<WriteResult> {
    const offset: Record<string, string> = options.offset === undefined ? {} : { 'upload-offset': String(options.offset) };
    return this.#patch(resource, { 'x-update-range': 'append', ...offset }, body, options, right);
  }

  async writeRange(resource: string, startBytes: number, body: FileBody, options: BodyOptions, right: WriteRight | null): Promise<WriteResult> {
    return this.#patch(resource, { 'x-update-range': `bytes=${startBytes}-` }, body, options, right);
  }

  async upload(directory: string, files: readonly UploadFile[], options: UploadOptions, right: WriteRight | null): Promise<UploadResult> {
    const { contentType, source } = await multipartBody(files, options.idempotencyKey !== undefined);
    const path = resourceUrlPath(FILES, directoryName(directory));
    return this.#upload({ method: 'POST', path, headers: { 'content-type': contentType }, source, options, right });
  }

  delete(resource: string, options: WriteOptions, right: WriteRight | null): Promise<WriteReceipt> {
    return this.#receipt('DELETE', resource, options, right);
  }

  makeDirectory(directory: string, options: WriteOptions, right: WriteRight | null): Promise<WriteReceipt> {
    return this.#receipt('PUT', directoryName(directory), options, right);
  }

  /** Each name goes with the token of the lease that covers it. */
  transfer(verb: 'moves' | 'copies', from: string, to: string, options: TransferOptions, rights: readonly WriteRight[]): Promise<WriteResult> {
    const fromRight = rights.find((right) => right.covers(from));
    const toRight = rights.find((right) => right.covers(to));
    const json: Transfer = {
      from,
      to,
      overwrite: options.overwrite ?? false,
      from_token: fromRight?.writeToken ?? null,
      to_token: toRight?.writeToken ?? null,
    };
    const used = [...new Set([fromRight, toRight])].filter((right) => right !== undefined);
    // The lease id proves one lease; with two of them the principal has to.
    const leaseId: Record<string, string> = used.length === 1 && used[0] !== undefined ? { 'x-lease-id': used[0].leaseId } : {};
    const headers = { ...this.#headers('POST', options, null), ...leaseId };
    return this.#guarded(options, used, true, async (signal) => {
      const request = { method: 'POST', path: `/v1/${verb}`, json, headers, waitMs: lockWaitMs(options), signal } as const;
      const answer = await this.#transport.answer<WrittenFile>(request);
      return { ...answer.json, ...replayOf((name) => answer.headers.get(name)) };
    });
  }

  /** Closes the connections that are kept for the next upload. */
  close(): void {
    this.#agent.destroy();
  }

  async #patch(
    resource: string,
    range: Record<string, string>,
    body: FileBody,
    options: BodyOptions,
    right: WriteRight | null,
  ): Promise<WriteResult> {
    const source = await bodySource(body, options.sizeBytes);
    const headers = { 'content-type': OCTETS, ...range };
    return this.#upload({ method: 'PATCH', path: resourceUrlPath(FILES, resource), headers, source, options, right });
  }

  async #upload<T>({ method, path, headers, source, options, right }: Upload): Promise<T & Replay> {
    const { onProgress } = options;
    const all = { ...this.#transport.headers, ...headers, ...(await digestHeader(source, options)), ...this.#headers(method, options, right) };
    const attempt = async (signal: AbortSignal): Promise<T & Replay> => {
      const exchange = new UploadExchange({
        url: `${this.#transport.base}${path}`,
        method,
        headers: all,
        agent: this.#agent,
        drops: this.#drops,
        source,
        clock: this.#transport.clock,
        silenceMs: CLIENT_LIMITS.requestMsMax + lockWaitMs(options),
        signal,
        onProgress,
      });
      const answer = await exchange.run();
      if (answer.status >= 300) throw refusalOf(answer);
      return { ...parsed<T>(answer.text), ...replayOf(answer.header) };
    };
    return this.#guarded(options, right === null ? [] : [right], () => source.available(), attempt);
  }

  async #receipt(method: 'PUT' | 'DELETE', name: string, options: WriteOptions, right: WriteRight | null): Promise<WriteReceipt> {
    const path = resourceUrlPath(FILES, name);
    const headers = this.#headers(method, options, right);
    const answer = await this.#guarded(options, right === null ? [] : [right], true, (signal) =>
      this.#transport.answer({ method, path, headers, waitMs: lockWaitMs(options), signal }),
    );
    const header = (name: string): string | null => answer.headers.get(name);
    return { fencing_token: header('x-fencing-token') ?? '', operation_id: header('x-operation-id') ?? '', ...replayOf(header) };
  }

  /** Never sends under a lease that is over here; ends what is under way when it is lost; tells the lease when the gateway says so. */
  async #guarded<T>(
    options: WriteOptions,
    rights: readonly WriteRight[],
    repeatable: true | (() => boolean),
    attempt: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { clock, closing } = this.#transport;
    const joined = new JoinedSignal(clock, [options.signal, closing, ...rights.map((right) => right.signal)], null);
    const checked = async (): Promise<T> => {
      options.signal?.throwIfAborted();
      closing.throwIfAborted();
      for (const right of rights) right.assertHeld();
      return attempt(joined.signal);
    };
    try {
      return await retrying(this.#transport, checked, {
        keyed: true,
        signal: joined.signal,
        ...(repeatable === true ? {} : { repeatable }),
      });
    } catch (thrown) {
      if (isFencegateError(thrown, 'stale_token', 'lease_ended')) {
        const reason = thrown.members['reason'];
        for (const right of rights) right.refused(typeof reason === 'string' ? reason : thrown.code);
      }
      throw thrown;
    } finally {
      joined.dispose();
    }
  }

  #headers(method: string, options: WriteOptions, right: WriteRight | null): Record<string, string> {
    const headers: Record<string, string> = { ...this.#transport.named(method), 'idempotency-key': options.idempotencyKey ?? randomUUID() };
    if (right !== null) {
      headers['x-fencing-token'] = right.writeToken;
      headers['x-lease-id'] = right.leaseId;
    }
    if (options.lockWaitMs !== undefined) headers['x-lock-wait-ms'] = String(options.lockWaitMs);
    if (options.ifMatch !== undefined) headers['if-match'] = options.ifMatch;
    if (options.ifNoneMatch !== undefined) headers['if-none-match'] = options.ifNoneMatch;
    return headers;
  }
}

/**
 * What tells this body from another one of the same length. Under a key of the caller's own it is made where the bytes are at hand, so that
 * the gateway does not take another body for the first one sent again; a key of ours names one call only.
 */
async function digestHeader(source: BodySource, { sha256, idempotencyKey }: BodyOptions): Promise<Readonly<Record<string, string>>> {
  const digest = sha256 !== undefined ? Buffer.from(sha256, 'hex') : idempotencyKey !== undefined && source.isFixed ? await sha256Of(source) : null;
  return digest === null ? {} : { 'content-digest': `sha-256=:${digest.toString('base64')}:` };
}

function replayOf(header: (name: string) => string | null): Replay {
  return { idempotency_replayed: header('idempotency-replayed') === 'true' };
}

function lockWaitMs({ lockWaitMs: waitMs = LOCK_WAIT_MS }: WriteOptions): number {
  return waitMs;
}

function parsed<T>(text: string): T {
  try {
    return JSON.parse(text) as T;
  } catch (cause) {
    throw new FencegateError('unexpected_answer', { detail: 'The answer is not JSON.', cause });
  }
}

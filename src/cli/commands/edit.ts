import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { FileDownload } from '../../client/download.ts';
import { isFencegateError } from '../../client/errors.ts';
import type { FencegateClient } from '../../client/fencegate-client.ts';
import type { LeaseHandle } from '../../client/lease-handle.ts';
import { leaseTimes } from '../child/lease-times.ts';
import { runUnderLease } from '../child/under-lease.ts';
import type { CommandContext } from '../command-context.ts';
import { clientEnvironment, closeSoon, openClient } from '../connection.ts';
import { EXIT } from '../exit-codes.ts';
import { interruptible } from '../interruptible.ts';
import { OrderIds } from '../order-ids.ts';
import { printable } from '../printable.ts';
import { sayWithoutWaiting } from '../standard-error.ts';
import { UsageError } from '../usage-error.ts';
import { giveBack, isReached, type LeaseFlags, leaseVariables, takeLease, tellsOfBreak } from './exec.ts';

const PLACE = '{}';
/** A file that was changed beside the gateway has no tag that a condition could name for 2 s. */
const REST_MS_MAX = 10_000;
const LOOK_EVERY_MS = 250;

/**
 * Takes a lease, gets the file, runs a command on the local copy, and puts the copy back under the lease: so any program that knows only files
 * becomes one that is fenced. Nothing is put when the command fails, changes nothing, or loses the lease. A copy that could not be put is kept.
 */
export async function editFile(context: CommandContext, resource: string, argv: readonly string[], flags: LeaseFlags): Promise<number> {
  if (!argv.some((word) => word.includes(PLACE))) throw new UsageError(`the command has no ${PLACE} where the name of the local copy goes`);
  if (resource.endsWith('/')) throw new UsageError('a directory cannot be edited; name a file');
  leaseTimes(flags);
  sayWithoutWaiting();
  const orders = new OrderIds();
  const client = await openClient(context.environment, flags, { onEvent: tellsOfBreak(context), requestId: orders.next });
  const directory = await mkdtemp(join(tmpdir(), 'fencegate-edit-'));
  const copy = new LocalCopy(client, resource, join(directory, basename(resource)));
  let keep: string | null = null;
  let reached = true;
  try {
    const lease = await takeLease(client, resource, flags);
    const end = await edit(context, { lease, copy, argv, flags }).finally(async () => {
      reached = (await giveBack(context, lease)) && isReached(lease);
    });
    keep = end.keep;
    // The only PUT here is what puts the copy back.
    if (end.refusal !== null) throw orders.interrupted(end.refusal, 'PUT');
    return end.code;
  } finally {
    if (keep !== null) context.host.complain(`what the command made of it is kept in ${keep}`);
    else await rm(directory, { recursive: true, force: true });
    await closeSoon(client, reached);
  }
}

interface Edit {
  readonly lease: LeaseHandle;
  readonly copy: LocalCopy;
  readonly argv: readonly string[];
  readonly flags: LeaseFlags;
}

interface EditEnd {
  readonly code: number;
  /** What is worth keeping, as it was changed and did not come back: the copy, or the directory that it was in. */
  readonly keep: string | null;
  /** Why it was not put back; `null` when nothing was refused. */
  readonly refusal: unknown;
}

async function edit(context: CommandContext, { lease, copy, argv, flags }: Edit): Promise<EditEnd> {
  if (!(await interruptible((signal) => copy.fetch(signal)))) return stillChanges(context, copy);
  const [command = '', ...args] = argv.map((word) => word.replaceAll(PLACE, copy.path));
  const environment = { ...clientEnvironment(context.environment, flags), ...leaseVariables(lease, copy.resource) };
  const { graceMs, marginMs } = leaseTimes(flags);
  const { code, lost } = await runUnderLease(context, { lease, command, args, environment, graceMs, marginMs });
  const now = await copy.look();
  if (lost) return leaseLost(context, copy, now === 'changed' ? copy.path : null);
  if (code !== EXIT.ok) {
    context.host.complain(`${printable(copy.resource)} was left as it was: the command ended with ${code}`);
    return { code, keep: now === 'changed' ? copy.path : null, refusal: null };
  }
  if (now === 'gone') {
    context.host.complain(`${printable(copy.resource)} was left as it was: the command left no file where its copy was`);
    context.host.complain('next: fencegate rm removes a file; for edit the command must write the copy where it is');
    const directory = dirname(copy.path);
    return { code: EXIT.failed, keep: (await readdir(directory)).length === 0 ? null : directory, refusal: null };
  }
  try {
    if (now === 'changed') await interruptible((signal) => copy.putBack(lease, signal));
    return { code, keep: null, refusal: null };
  } catch (refusal) {
    // The lease was over before anybody told us, or since a moment ago: the same as when we are told before. Nothing was written.
    if (isFencegateError(refusal, 'stale_token', 'lease_ended', 'lease_lost')) {
      context.host.complain(printable(`${refusal.code}: ${refusal.message}`));
      return leaseLost(context, copy, copy.path);
    }
    return { code: EXIT.failed, keep: copy.path, refusal };
  }
}

/** Put back, it would go onto what nobody has seen. */
function stillChanges({ host }: CommandContext, { resource }: LocalCopy): EditEnd {
  host.complain(`${printable(resource)} was left as it was: somebody keeps changing it beside the gateway`);
  host.complain('next: edit it when that is over');
  return { code: EXIT.failed, keep: null, refusal: null };
}

function leaseLost({ host }: CommandContext, { resource }: LocalCopy, keep: string | null): EditEnd {
  host.complain(`${printable(resource)} was left as it was: the lease was lost`);
  host.complain('next: look at what is there now, and edit that');
  return { code: EXIT.leaseLost, keep, refusal: null };
}

/** The file as the command sees it, and what was there when it came. */
class LocalCopy {
  readonly resource: string;
  readonly path: string;
  readonly #client: FencegateClient;
  #etag: string | null = null;
  #digest = '';

  constructor(client: FencegateClient, resource: string, path: string) {
    this.#client = client;
    this.resource = resource;
    this.path = path;
  }

  /** A file that is not there yet begins empty. Resolves with false when it could not be told what it is: it does not rest. */
  async fetch(signal: AbortSignal): Promise<boolean> {
    try {
      const download = await this.#atRest(signal);
      if (download === null) return false;
      this.#etag = download.etag;
      await download.saveTo(this.path);
    } catch (thrown) {
      if (!isFencegateError(thrown, 'not_found')) throw thrown;
      await writeFile(this.path, '');
    }
    this.#digest = await digestOf(this.path);
    return true;
  }

  /** Under a tag that a condition can name; a weak one never matches, and without one the work of somebody else would be lost. */
  async #atRest(signal: AbortSignal): Promise<FileDownload | null> {
    const deadlineMs = performance.now() + REST_MS_MAX;
    do {
      const download = await this.#client.get(this.resource, { signal });
      if (!download.etag.startsWith('W/')) return download;
      download.cancel();
      await delay(LOOK_EVERY_MS, undefined, { signal });
    } while (performance.now() < deadlineMs);
    return null;
  }

  /** What the command made of it. */
  async look(): Promise<'same' | 'changed' | 'gone'> {
    try {
      return (await digestOf(this.path)) === this.#digest ? 'same' : 'changed';
    } catch (thrown) {
      // Removed, moved away, or a directory now.
      if (thrown instanceof Error && 'code' in thrown && (thrown.code === 'ENOENT' || thrown.code === 'EISDIR')) return 'gone';
      throw thrown;
    }
  }

  /** Only onto what was fetched: a program that went around the gateway may have changed it. */
  async putBack(lease: LeaseHandle, signal: AbortSignal): Promise<void> {
    const condition = this.#etag === null ? { ifNoneMatch: '*' } : { ifMatch: this.#etag };
    await lease.put(this.resource, { path: this.path }, { ...condition, signal });
  }
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

import { randomUUID } from 'node:crypto';
import { lstat, open, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Entry } from '../../client/contract/answers.ts';
import type { FileDownload } from '../../client/download.ts';
import type { WriteOptions } from '../../client/write-options.ts';
import type { CommandContext } from '../command-context.ts';
import { type ConnectionFlags, withClient, withOrder } from '../connection.ts';
import { EXIT } from '../exit-codes.ts';
import { printable } from '../printable.ts';
import { transferProgress } from '../progress-bar.ts';
import { outJson } from '../screen.ts';
import { outTable } from '../table.ts';
import { UsageError } from '../usage-error.ts';

export interface ReadFlags extends ConnectionFlags {
  readonly json?: boolean;
}

export interface WriteFlags extends ReadFlags {
  /** How long a write without a lease stands in line, ms. */
  readonly wait?: number;
  readonly ifMatch?: string;
  readonly ifNoneMatch?: string;
}

export interface MoveFlags extends WriteFlags {
  readonly force?: boolean;
}

/** The bytes that were written are not there. */
const NOT_KEPT: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EIO', 'ESTALE']);
const STANDARD_STREAM = '-';
/** Opened by this name it would be emptied where it is a file, and the result would stand in it. */
const STANDARD_OUTPUT = '/dev/stdout';

/** Inside `fencegate exec` the SDK puts the lease of the environment to it. */
export function putFile(context: CommandContext, local: string, target: string, flags: WriteFlags): Promise<number> {
  return withOrder(context, flags, async (client, signal) => {
    const resource = target.endsWith('/') ? `${target}${nameOf(local)}` : target;
    if (local !== STANDARD_STREAM && !(await stat(local)).isFile()) throw new UsageError(`${local} is no file`);
    const { onProgress, end } = await transferProgress(context.screen, printable(resource));
    try {
      const body = local === STANDARD_STREAM ? process.stdin : { path: local };
      const written = await client.put(resource, body, { ...writeOptions(flags, signal), onProgress });
      end();
      if (flags.json === true) outJson(context.screen, written);
      else context.screen.out(`${printable(resource)}  ${written.size_bytes} bytes  ${written.etag}  token ${written.fencing_token}\n`);
      return EXIT.ok;
    } finally {
      end();
    }
  });
}

export function getFile(context: CommandContext, resource: string, target: string | undefined, flags: ReadFlags): Promise<number> {
  // Over HTTP that is a listing, which nobody wants in a file of that name.
  if (resource.endsWith('/')) throw new UsageError(`${printable(resource)} names a directory: fencegate ls shows what is in it`);
  const isOutput = target === STANDARD_STREAM || target === STANDARD_OUTPUT;
  if (isOutput && flags.json === true)
    throw new UsageError('with - standard output is the file, and has no room for --json; name a local file, or leave one of them away');
  return withClient(context, flags, async (client, signal) => {
    const local = isOutput ? STANDARD_STREAM : await localTarget(resource, target);
    const { onProgress, end } = await transferProgress(context.screen, printable(resource));
    try {
      const download = await client.get(resource, { signal, onProgress });
      if (local === STANDARD_STREAM) {
        await pipeline(download.stream(), process.stdout, { end: false, signal });
        return EXIT.ok;
      }
      await save(download, local);
      end();
      const { etag, sizeBytes } = download;
      if (flags.json === true) outJson(context.screen, { resource, local, etag, size_bytes: sizeBytes });
      else context.screen.out(`${printable(local)}  ${sizeBytes ?? '?'} bytes  ${etag}\n`);
      return EXIT.ok;
    } finally {
      end();
    }
  });
}

/**
 * A local file is whole or not there: the bytes go to a name of their own first, and take its place. What is no plain file (a device, a pipe, a link)
 * is written into: nobody wants a file in place of /dev/null.
 */
async function save(download: FileDownload, local: string): Promise<void> {
  if (!(await isReplaceable(local))) return download.saveTo(local);
  const part = join(dirname(local), `.${basename(local)}.${randomUUID()}.part`);
  try {
    await download.saveTo(part);
    await flush(part);
    await rename(part, local);
  } catch (thrown) {
    // Where it cannot be removed, it could not be made either, and why is told.
    await rm(part, { force: true }).catch(() => undefined);
    throw ofLocal(thrown, part, local);
  }
}

/** A file system over a network may say only now that it has no room. One that has no such call at all says something else, which is no failure. */
async function flush(path: string): Promise<void> {
  const file = await open(path, 'r+');
  try {
    await file.sync();
  } catch (thrown) {
    if (thrown instanceof Error && 'code' in thrown && NOT_KEPT.has(String(thrown.code))) throw Object.assign(thrown, { path });
  } finally {
    await file.close();
  }
}

async function isReplaceable(local: string): Promise<boolean> {
  return lstat(local).then(
    (facts) => facts.isFile(),
    () => true,
  );
}

/** Without a name the volumes. */
export function listDirectory(context: CommandContext, directory: string | undefined, flags: ReadFlags): Promise<number> {
  return withClient(context, flags, async (client, signal) => {
    if (directory === undefined) {
      const volumes = await client.volumes({ signal });
      if (flags.json === true) outJson(context.screen, volumes);
      else {
        const rows = volumes.map((one) => [one.name, one.files ? 'files' : 'locks only', one.require_token, one.read_only ? 'yes' : 'no']);
        await outTable(context.screen, ['VOLUME', 'KIND', 'TOKEN REQUIRED', 'READ-ONLY'], rows);
      }
      return EXIT.ok;
    }
    const entries: Entry[] = [];
    for await (const entry of client.list(directory, { signal })) {
      if (flags.json === true) outJson(context.screen, entry);
      else entries.push(entry);
    }
    if (flags.json === true) return EXIT.ok;
    const rows = entries.map((entry) => [
      entry.type === 'symbolic_link' ? 'link' : entry.type,
      entry.size_bytes,
      entry.modified_at,
      entry.name ?? `base64:${entry.name_base64}`,
    ]);
    await outTable(context.screen, ['TYPE', 'BYTES', 'MODIFIED', 'NAME'], rows);
    return EXIT.ok;
  });
}

export function removeFile(context: CommandContext, resource: string, flags: WriteFlags): Promise<number> {
  return withOrder(context, flags, async (client, signal) => {
    const receipt = await client.delete(resource, writeOptions(flags, signal));
    if (flags.json === true) outJson(context.screen, { resource, ...receipt });
    return EXIT.ok;
  });
}

export function moveFile(context: CommandContext, from: string, to: string, flags: MoveFlags): Promise<number> {
  return withOrder(context, flags, async (client, signal) => {
    const target = to.endsWith('/') ? `${to}${nameOf(from)}` : to;
    const lockWait = flags.wait === undefined ? {} : { lockWaitMs: flags.wait };
    const moved = await client.move(from, target, { overwrite: flags.force === true, ...lockWait, signal });
    if (flags.json === true) outJson(context.screen, moved);
    return EXIT.ok;
  });
}

function writeOptions({ wait, ifMatch, ifNoneMatch }: WriteFlags, signal: AbortSignal): WriteOptions {
  return {
    ...(wait === undefined ? {} : { lockWaitMs: wait }),
    ...(ifMatch === undefined ? {} : { ifMatch }),
    ...(ifNoneMatch === undefined ? {} : { ifNoneMatch }),
    signal,
  };
}

function nameOf(path: string): string {
  if (path === STANDARD_STREAM) throw new UsageError('what comes from standard input has no name; write VOL/PATH in full');
  return basename(path);
}

/** An error of the system is told of the name that was given, not of the one that the bytes had on the way. */
function ofLocal(thrown: unknown, part: string, local: string): unknown {
  if (!(thrown instanceof Error && 'path' in thrown && thrown.path === part)) return thrown;
  return Object.assign(new Error(thrown.message.replaceAll(part, local), { cause: thrown }), { ...thrown, path: local });
}

async function localTarget(resource: string, target: string | undefined): Promise<string> {
  if (target === undefined) return nameOf(resource);
  const isDirectory = await stat(target).then(
    (facts) => facts.isDirectory(),
    () => false,
  );
  return isDirectory ? join(target, nameOf(resource)) : target;
}

import { constants } from 'node:fs';
import { GatewayError, refuse } from '../domain/errors.ts';
import { sameVersion, type TargetFacts } from '../domain/file-facts.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Staging } from '../domain/volume.ts';
import { type At, at, type Descriptor } from './descriptor.ts';
import { mapped } from './errno.ts';
import { StagedFile, type StagedOptions, type StagingRoom, stageEmpty } from './staging.ts';
import { factsOf } from './target-kind.ts';

export interface CopyOptions {
  readonly overlay: { readonly staged: Staging; readonly offset: number } | null;
  readonly hash: boolean;
  readonly sha512: boolean;
}

interface Span {
  readonly read: (into: Uint8Array, position: number) => Promise<number>;
  /** Where the span begins in its source, and where in the copy. */
  readonly from: number;
  readonly to: number;
  readonly length: number;
}

/**
 * A staged copy of one version of a file (copy-on-write range writes, COPY). Where blocks can be shared the copy costs nothing;
 * elsewhere it goes through a fixed buffer and stops between chunks when `signal` fires with the signal's reason (trap F33: no
 * single long copy call). Rejects with `volume_unavailable` when the file is not, or does not stay, the version in `facts`.
 */
export async function stageCopy(
  staging: StagingRoom,
  source: At,
  facts: TargetFacts,
  options: CopyOptions,
  signal: AbortSignal,
): Promise<StagedFile> {
  return mapped(async () => {
    signal.throwIfAborted();
    const { calls } = staging.room;
    const file = await calls.open(source, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    let copy: StagedFile | null = null;
    try {
      await assertVersion(staging, file, facts);
      copy = await fill(staging, file, facts, options, signal);
      // Who writes in place, past the gateway or through it, may have been met in the middle.
      await assertVersion(staging, file, facts);
      return copy;
    } catch (thrown) {
      await copy?.discard();
      throw thrown;
    } finally {
      await calls.close(file).catch(() => undefined);
    }
  });
}

async function fill(staging: StagingRoom, file: Descriptor, facts: TargetFacts, options: CopyOptions, signal: AbortSignal): Promise<StagedFile> {
  const { calls } = staging.room;
  const { sizeBytes } = facts;
  const overlay = overlaySpan(options.overlay);
  if (overlay !== null && overlay.to > sizeBytes) throw refuse('range_not_satisfiable', 'The range begins behind the end of the file.');
  // A copy that replaces nothing has the mode of what it was copied from, as with cp.
  const made = { hash: options.hash, sha512: options.sha512, newFileMode: facts.mode & 0o777 };
  const shared = await tryReflink(staging, file, sizeBytes, made);
  const copy = shared ?? (await stageEmpty(staging, made));
  try {
    if (shared !== null) {
      if (overlay !== null) await pump([overlay], signal, (chunk, position) => shared.writeAt(chunk, position));
      const whole = { read: (into: Uint8Array, position: number) => shared.readAt(into, position), from: 0, to: 0, length: shared.bytesWritten };
      if (options.hash) await pump([whole], signal, async (chunk) => shared.observe(chunk));
    } else {
      const source = (into: Uint8Array, position: number): Promise<number> => calls.read(file, into, position);
      await pump(spans(source, sizeBytes, overlay), signal, (chunk) => copy.write(chunk));
    }
    return copy;
  } catch (thrown) {
    await copy.discard();
    throw thrown;
  }
}

/** The parts of the copy in order: what is before the overlay, the overlay, what is behind it. */
function spans(source: Span['read'], sizeBytes: number, overlay: Span | null): Span[] {
  if (overlay === null) return [{ read: source, from: 0, to: 0, length: sizeBytes }];
  const end = overlay.to + overlay.length;
  const head = { read: source, from: 0, to: 0, length: Math.min(overlay.to, sizeBytes) };
  const tail = { read: source, from: end, to: end, length: Math.max(0, sizeBytes - end) };
  return [head, overlay, tail];
}

function overlaySpan(overlay: CopyOptions['overlay']): Span | null {
  if (overlay === null) return null;
  const { staged, offset } = overlay;
  if (!(staged instanceof StagedFile)) throw new Error('an overlay must have been staged on the same volume');
  return { read: (into, position) => staged.readAt(into, position), from: 0, to: offset, length: staged.bytesWritten };
}

async function pump(parts: readonly Span[], signal: AbortSignal, use: (chunk: Uint8Array, position: number) => Promise<void>): Promise<void> {
  const longest = Math.max(0, ...parts.map((part) => part.length));
  const buffer = Buffer.allocUnsafeSlow(Math.min(LIMITS.copyChunkBytes, longest));
  for (const part of parts) {
    for (let done = 0; done < part.length; ) {
      signal.throwIfAborted();
      const count = await part.read(buffer.subarray(0, Math.min(buffer.byteLength, part.length - done)), part.from + done);
      if (count === 0) throw changedMeanwhile();
      await use(buffer.subarray(0, count), part.to + done);
      done += count;
    }
  }
}

/** @returns `null` where blocks cannot be shared, by the probe or for this file; the copy is then plain. */
async function tryReflink(staging: StagingRoom, file: Descriptor, sizeBytes: number, made: StagedOptions): Promise<StagedFile | null> {
  const { calls, inc, litter } = staging.room;
  if (!staging.reflink || sizeBytes === 0) return null;
  const plainName = staging.nextName();
  const name = at(inc, plainName);
  const clone = async (cloned: () => void): Promise<Descriptor> => {
    await calls.reflink(file, name);
    cloned();
    return calls.open(name, constants.O_RDWR | constants.O_NOFOLLOW);
  };
  try {
    const opened = await litter.making(plainName, () => calls.unlink(name), clone);
    return new StagedFile(staging, plainName, opened, { ...made, bytesCopied: sizeBytes });
  } catch (thrown) {
    if (thrown instanceof GatewayError) throw thrown;
    // Whatever the reason, a plain copy is right as well, or meets the error again.
    return null;
  }
}

async function assertVersion(staging: StagingRoom, file: Descriptor, facts: TargetFacts): Promise<void> {
  const now = factsOf(await staging.room.calls.fstat(file));
  if (now.kind !== 'file' || !sameVersion(now, facts)) throw changedMeanwhile();
}

function changedMeanwhile(): GatewayError {
  return new GatewayError('volume_unavailable', { detail: 'The file was changed while it was being copied.', retryAfterMs: 1_000 });
}

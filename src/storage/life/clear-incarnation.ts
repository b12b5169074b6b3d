import { LIMITS } from '../../domain/limits.ts';
import { type At, at, type Descriptor } from '../descriptor.ts';
import { errnoOf } from '../errno.ts';
import type { FileCalls } from '../file-calls.ts';
import { copyInto } from './copy-into.ts';
import type { IncarnationDirectory } from './incarnation-directory.ts';
import { draftNameOf, isSillyRename } from './volume-names.ts';
import { OPEN_DIRECTORY, OPEN_READ, orAbsent, withOpen } from './whole-file.ts';

export interface ClearDeps {
  readonly calls: FileCalls;
  /** The descriptor of `.fencegate`. */
  readonly control: Descriptor;
  readonly own: IncarnationDirectory;
  /**
   * Whether a file under this name may be the source of a late LINK: staged to be created, never to replace. A link names its
   * source by file handle on NFS, so such a file must die with the old directory; it goes on as a copy.
   */
  readonly copies: (name: string) => boolean;
  /** Ends the old process on this host and waits for its end; false when that is impossible. Asked for `.nfs*` left-overs. */
  readonly endOldProcess: () => Promise<boolean>;
  readonly pause: (ms: number) => Promise<void>;
}

/** Why an old directory could not be removed; the volume stays closed. `foreign`: something in it that we never put there. */
export class ClearStopped extends Error {
  readonly kind: 'foreign' | 'still_used' | 'still_filled';

  constructor(kind: ClearStopped['kind'], message: string) {
    super(message);
    this.kind = kind;
  }
}

/**
 * Clears and removes the directory of a superseded incarnation: after this, every late rename, link or create of its process
 * fails. Every regular file goes on under its own name in the successor's directory; never recursive; anything that is no
 * regular file stops it. Idempotent: it may have been interrupted anywhere, and a missing directory is what it wants.
 */
export async function clearIncarnation(deps: ClearDeps, old: string): Promise<void> {
  if (old === deps.own.name) throw new Error('an incarnation never clears itself');
  const { calls, control } = deps;
  let asked = false;
  for (let round = 0; round < LIMITS.clearRoundsMax; round += 1) {
    const directory = await orAbsent(calls.open(at(control, old), OPEN_DIRECTORY));
    if (directory === null) return await calls.fsync(control);
    let left: 'moved' | 'silly' | 'empty';
    try {
      left = await emptyOnce(deps, old, directory);
    } finally {
      await calls.close(directory);
    }
    if (left === 'silly') {
      if (asked || !(await deps.endOldProcess())) await waitForSilly(deps, old);
      asked = true;
    }
    if (left !== 'moved' && (await removed(deps, old))) return await calls.fsync(control);
  }
  throw new ClearStopped('still_filled', `the directory of incarnation ${old} is being filled faster than it can be emptied`);
}

/** One pass over one batch. `empty`: nothing was seen; `silly`: only `.nfs*` left-overs were. */
async function emptyOnce(deps: ClearDeps, old: string, directory: Descriptor): Promise<'moved' | 'silly' | 'empty'> {
  const names = await batchOf(deps.calls, directory);
  let silly = false;
  for (const name of names) {
    if (isSillyRename(name.toString('latin1'))) silly = true;
    else await carryOver(deps, old, at(directory, name));
  }
  const moved = names.some((name) => !isSillyRename(name.toString('latin1')));
  if (moved) await deps.own.sync();
  return moved ? 'moved' : silly ? 'silly' : 'empty';
}

async function carryOver(deps: ClearDeps, old: string, from: At): Promise<void> {
  const { calls, own, copies } = deps;
  const found = await orAbsent(calls.lstat(from));
  // Its process was faster; its rename is an ordinary write from before the take-over.
  if (found === null) return;
  if (!found.isFile()) {
    throw new ClearStopped(
      'foreign',
      `the directory of incarnation ${old} holds ${String(from.name)}, which is not a regular file; it must be looked at and removed by hand`,
    );
  }
  if (copies(String(from.name))) await copyAndUnlink(deps, from);
  else await orAbsent(calls.rename(from, own.entry(from.name)));
}

/** Whole and durable under its name before the original's last name goes. */
async function copyAndUnlink({ calls, own }: ClearDeps, from: At): Promise<void> {
  const draft = own.entry(draftNameOf(String(from.name)));
  const copied = await orAbsent(withOpen(calls, from, OPEN_READ, (source) => copyInto(calls, source, draft)));
  if (copied === null) return;
  await calls.rename(draft, own.entry(from.name));
  await own.sync();
  await orAbsent(calls.unlink(from));
}

async function removed({ calls, control }: ClearDeps, old: string): Promise<boolean> {
  try {
    await calls.rmdir(at(control, old));
    return true;
  } catch (thrown) {
    const name = errnoOf(thrown);
    if (name === 'ENOENT') return true;
    // The old process made another file meanwhile: again.
    if (name === 'ENOTEMPTY' || name === 'EEXIST' || name === 'EBUSY') return false;
    throw thrown;
  }
}

/** The left-overs go when the last descriptor closes; nobody can be made to close it faster. */
async function waitForSilly(deps: ClearDeps, old: string): Promise<void> {
  const turns = Math.ceil(LIMITS.oldProcessEndMsMax / LIMITS.oldProcessPollMs);
  for (let turn = 0; turn < turns; turn += 1) {
    if (await removed(deps, old)) return;
    await deps.pause(LIMITS.oldProcessPollMs);
  }
  throw new ClearStopped('still_used', `files in the directory of incarnation ${old} are still open in its process, which could not be ended`);
}

async function batchOf(calls: FileCalls, directory: Descriptor): Promise<Buffer[]> {
  const open = await calls.openDirectory(directory);
  try {
    const names: Buffer[] = [];
    while (names.length < LIMITS.clearBatchMax) {
      const name = await calls.readDirectory(open);
      if (name === null) break;
      names.push(name);
    }
    return names;
  } finally {
    await open.close().catch(() => undefined); // reading is over; nothing was written through it
  }
}

import { constants } from 'node:fs';
import type { Random } from '../../domain/clock.ts';
import { at, type Descriptor } from '../descriptor.ts';
import { errnoOf } from '../errno.ts';
import type { FileCalls } from '../file-calls.ts';
import { CONTROL_DIRECTORY, OWNER_FILE, ownerDraftName } from './volume-names.ts';
import { type OwnDirectory, orAbsent, readSmall, withOpen, writeSmall } from './whole-file.ts';

/** `.fencegate/owner`: whose volume this is. Made once by an exclusive `link`; changed only by `volume adopt`. */
export interface VolumeOwner {
  /** The gateway's uuid, or the id of the coordinator that several gateways share. */
  readonly owner: string;
  /** Made once here; the name of the volume that no mount point changes. */
  readonly volume: string;
}

/** The owner file is there and says nothing that can be trusted: the volume stays closed. */
export class OwnerUnreadable extends Error {}

export function ownerBytes(content: VolumeOwner): Uint8Array {
  return Buffer.from(`${JSON.stringify({ owner: content.owner, volume: content.volume })}\n`);
}

export function parseOwner(bytes: Uint8Array): VolumeOwner {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch (thrown) {
    throw new OwnerUnreadable(`${CONTROL_DIRECTORY}/${OWNER_FILE} is not JSON`, { cause: thrown });
  }
  const { owner, volume } = (value ?? {}) as Partial<Record<keyof VolumeOwner, unknown>>;
  if (typeof owner !== 'string' || owner === '' || typeof volume !== 'string' || volume === '') {
    throw new OwnerUnreadable(`${CONTROL_DIRECTORY}/${OWNER_FILE} names no owner`);
  }
  return { owner, volume };
}

/** `null` when nobody owns the volume yet. */
export async function readOwner(calls: FileCalls, control: Descriptor): Promise<VolumeOwner | null> {
  const bytes = await readSmall(calls, at(control, OWNER_FILE));
  return bytes === null ? null : parseOwner(bytes);
}

/**
 * Reads the owner, or makes `owner` it when there is none. Of two that try at once exactly one wins, and both read the same
 * answer: the file is read back, because an NFS server may report EEXIST for the link that it made (trap F8).
 */
export async function claimOwner(calls: FileCalls, control: Descriptor, owner: string, random: Random): Promise<VolumeOwner> {
  const present = await readOwner(calls, control);
  if (present !== null) return present;
  const draft = at(control, ownerDraftName(Buffer.from(random.bytes(16)).toString('hex')));
  const content: VolumeOwner = { owner, volume: Buffer.from(random.bytes(16)).toString('hex') };
  await withOpen(calls, draft, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, async (file) => {
    await calls.writeAll(file, ownerBytes(content), 0);
    await calls.fsync(file);
  });
  try {
    await calls.link(draft, at(control, OWNER_FILE));
  } catch (thrown) {
    if (errnoOf(thrown) === 'EEXIST' || errnoOf(thrown) === 'ENOENT') {
      // Somebody was faster, and may have swept our draft; what stands there is read below.
    } else if (isWithoutLinks(thrown)) {
      await claimByExclusiveCreate(calls, control, content);
    } else throw thrown;
  }
  await calls.fsync(control);
  await orAbsent(calls.unlink(draft));
  const settled = await readOwner(calls, control);
  if (settled === null) throw new OwnerUnreadable(`${CONTROL_DIRECTORY}/${OWNER_FILE} disappeared while it was made`);
  return settled;
}

/** Takes the volume over from whoever has it; only after every incarnation directory was cleared. */
export async function takeOwnership(calls: FileCalls, control: Descriptor, own: OwnDirectory, content: VolumeOwner): Promise<void> {
  await writeSmall(calls, own, at(control, OWNER_FILE), ownerBytes(content));
}

function isWithoutLinks(thrown: unknown): boolean {
  const name = errnoOf(thrown);
  return name === 'EPERM' || name === 'ENOTSUP' || name === 'ENOSYS' || name === 'EMLINK';
}

/** Where the file system has no hard links: exclusive too, but a crash between create and write leaves an owner file that nobody can read. */
async function claimByExclusiveCreate(calls: FileCalls, control: Descriptor, content: VolumeOwner): Promise<void> {
  try {
    await withOpen(calls, at(control, OWNER_FILE), constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, async (file) => {
      await calls.writeAll(file, ownerBytes(content), 0);
      await calls.fsync(file);
    });
  } catch (thrown) {
    if (errnoOf(thrown) !== 'EEXIST') throw thrown;
  }
}

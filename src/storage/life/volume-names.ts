import { type Random, randomName } from '../../domain/clock.ts';

/**
 * The names directly inside `.fencegate`, which readers never see and writers never name. (Names inside an incarnation
 * directory: `../incarnation-names.ts`.)
 */

export const CONTROL_DIRECTORY = '.fencegate';
export const OWNER_FILE = 'owner';
export const STAMP_FILE = 'stamp';

const INCARNATION = /^[0-9a-f]{32}$/;
const OWNER_DRAFT = /^owner-[0-9a-f]{32}$/;
const PROBE = /^probe-[\w-]{16}$/;

/** 128 random bits as hex: never made twice, so a removed directory never comes back under a late call's feet. */
export function isIncarnationName(name: string): boolean {
  return INCARNATION.test(name);
}

export function ownerDraftName(unique: string): string {
  return `owner-${unique}`;
}

export function isOwnerDraft(name: string): boolean {
  return OWNER_DRAFT.test(name);
}

/** Of a start-up self-test; one that was cut off leaves it. */
export function probeName(random: Random): string {
  return `probe-${randomName(random, 12)}`;
}

/** No name is made twice: it is of this start, or nobody needs it any more. */
export function isProbeName(name: string): boolean {
  return PROBE.test(name);
}

/** A file that grows under this name until it is whole and synced. */
export function draftNameOf(name: string): string {
  return `${name}.draft`;
}

/** The changed copy of a file whose inode is to be replaced (redo). */
export function copyNameOf(staged: string): string {
  return `${staged}.copy`;
}

/** Left by an NFS client for a file that was unlinked while open (trap F11). */
export function isSillyRename(name: string): boolean {
  return name.startsWith('.nfs');
}

/**
 * The names directly inside `.fencegate`, which readers never see and writers never name. (Names inside an incarnation
 * directory: `../incarnation-names.ts`.)
 */

export const CONTROL_DIRECTORY = '.fencegate';
export const OWNER_FILE = 'owner';
export const STAMP_FILE = 'stamp';

const INCARNATION = /^[0-9a-f]{32}$/;
const OWNER_DRAFT = /^owner-[0-9a-f]{32}$/;

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

/** What a start-up self-test that was cut off left; its names are never used again. */
export function isProbeName(name: string): boolean {
  return name.startsWith('probe-');
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

import { FENCING_TOKEN_MAX } from '../../domain/fencing-token.ts';
import type { StampVerdict } from '../../domain/recovery.ts';
import { at, type Descriptor } from '../descriptor.ts';
import type { FileCalls } from '../file-calls.ts';
import { CONTROL_DIRECTORY, STAMP_FILE } from './volume-names.ts';
import { type OwnDirectory, readSmall, writeSmall } from './whole-file.ts';

/**
 * `.fencegate/stamp`: what the volume itself remembers of the tokens issued for it, so that a lost or restored journal is noticed
 * and no token is ever issued twice (I6; trap T30).
 */
export interface Stamp {
  readonly journal: string;
  /** No token above this was ever issued for the volume. */
  readonly ceiling: bigint;
  /** The highest token known to be issued when the stamp was last refreshed; 0: none. */
  readonly last: bigint;
  /** The journal that it names had the ceiling durably before the volume did. Stamps of earlier versions do not say so. */
  readonly reserved: boolean;
}

/** What our journal has to compare a stamp with. */
export interface JournalFacts {
  readonly uuid: string;
  /** The highest token that it knows: the highest mark or floor; `null` when it has none. */
  readonly knows: bigint | null;
  /** The highest ceiling that it ever reserved on this volume; `null`: none. */
  readonly reserved: bigint | null;
}

/** A stamp that cannot be read proves nothing about the tokens issued: the volume stays closed. */
export class StampUnreadable extends Error {}

const DECIMAL = /^(0|[1-9][0-9]{0,18})$/;

function numberOf(text: unknown): bigint {
  if (typeof text !== 'string' || !DECIMAL.test(text) || BigInt(text) > FENCING_TOKEN_MAX)
    throw new StampUnreadable(`${CONTROL_DIRECTORY}/${STAMP_FILE} holds a number that is no token`);
  return BigInt(text);
}

export function parseStamp(bytes: Uint8Array): Stamp {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch (thrown) {
    throw new StampUnreadable(`${CONTROL_DIRECTORY}/${STAMP_FILE} is not JSON`, { cause: thrown });
  }
  const { journal, ceiling, last, reserved } = (value ?? {}) as Partial<Record<keyof Stamp, unknown>>;
  if (typeof journal !== 'string' || journal === '') throw new StampUnreadable(`${CONTROL_DIRECTORY}/${STAMP_FILE} names no journal`);
  const stamp = { journal, ceiling: numberOf(ceiling), last: numberOf(last), reserved: reserved === true };
  if (stamp.last > stamp.ceiling) throw new StampUnreadable(`${CONTROL_DIRECTORY}/${STAMP_FILE} has a token above its ceiling`);
  return stamp;
}

export function stampBytes(stamp: Stamp): Uint8Array {
  const { journal, ceiling, last, reserved } = stamp;
  return Buffer.from(`${JSON.stringify({ journal, ceiling: ceiling.toString(), last: last.toString(), reserved })}\n`);
}

/** `null`: no token was ever issued for this volume. */
export async function readStamp(calls: FileCalls, control: Descriptor): Promise<Stamp | null> {
  const bytes = await readSmall(calls, at(control, STAMP_FILE));
  return bytes === null ? null : parseStamp(bytes);
}

/** Durable when it resolves. Fails when `own` was removed by a successor: a superseded process changes no stamp. */
export async function writeStamp(calls: FileCalls, control: Descriptor, own: OwnDirectory, stamp: Stamp): Promise<void> {
  await writeSmall(calls, own, at(control, STAMP_FILE), stampBytes(stamp));
}

/**
 * A stamp with our journal's name and a token, or a ceiling, that the journal does not have is of a later state of it: the journal was put
 * back. No crash looks like that, because the journal always has a ceiling first (see `token-stamp.ts`).
 */
export function judgeStamp(found: Stamp | null, { uuid, knows, reserved }: JournalFacts): StampVerdict {
  if (found === null) return 'ok';
  if (found.journal !== uuid) return 'other_journal';
  if (found.last > (knows ?? 0n)) return 'ahead_of_journal';
  return found.reserved && found.ceiling > (reserved ?? 0n) ? 'unreserved_ceiling' : 'ok';
}

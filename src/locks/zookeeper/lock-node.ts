import type { LeaseMode } from '../../domain/lease.ts';
import { PASS_PER_STEP, PRIORITY_MAX } from '../order-key.ts';

/**
 * The children of a resource's node. A contender of ours is `_c_<guid>-<mode><priority>-lock-<sequence>`; everything else was made by
 * another recipe. Pure: names and their order, no I/O.
 */

/** Beyond this the counter sticks, or turns negative (trap T3): such children say nothing about who came first. */
const SEQUENCE_END = 2_147_483_647;
/** An idle resource node past this is made anew: also before its version, of which a lease takes two or more, is at its own end. */
export const SEQUENCE_RENEW = 2 ** 29;

const OWN = /^_c_([0-9a-f]{32})-([xs])([0-9])-lock-(-?[0-9]+)$/;
const SEQUENCE = /([0-9]{10})$/;
/** Of another recipe: a sign after its own separator, and what ten places leave for the digits. */
const NEGATIVE = /[-_]-[0-9]{9,10}$/;

export interface Child {
  readonly name: string;
  /** `null`: no number, or one past the end of the counter. */
  readonly sequence: number | null;
  /** Only needed, and only read, when `sequence` is `null`. */
  readonly czxid: bigint | null;
  /** `null` for children of another recipe. */
  readonly contender: ContenderTerms | null;
}

export interface ContenderTerms {
  readonly guid: string;
  readonly mode: LeaseMode;
  readonly priority: number;
}

/** @param guid 32 hex digits; tells after a lost reply which child is ours (trap T10). */
export function contenderPrefix({ guid, mode, priority }: ContenderTerms): string {
  return `_c_${guid}-${mode === 'exclusive' ? 'x' : 's'}${priority}-lock-`;
}

/** What the server calls the child that it gives this number. */
export function contenderName(terms: ContenderTerms, sequence: number): string {
  return `${contenderPrefix(terms)}${sequence.toString().padStart(10, '0')}`;
}

export function parseChild(name: string): Child {
  const own = OWN.exec(name);
  if (own !== null) {
    const [, guid = '', mode, priority, sequence] = own;
    const terms: ContenderTerms = { guid, mode: mode === 'x' ? 'exclusive' : 'shared', priority: Number(priority) };
    return { name, sequence: counted(sequence), czxid: null, contender: terms };
  }
  return { name, sequence: NEGATIVE.test(name) ? null : counted(SEQUENCE.exec(name)?.[1]), czxid: null, contender: null };
}

function counted(digits: string | undefined): number | null {
  const number = Number(digits ?? '-1');
  return number >= 0 && number < SEQUENCE_END ? number : null;
}

/** Who came first. Numbers past the end come after all others, among themselves by `czxid`. */
export function byArrival(a: Child, b: Child): number {
  if (a.sequence !== null && b.sequence !== null) return a.sequence - b.sequence;
  if (a.sequence !== null) return -1;
  if (b.sequence !== null) return 1;
  const [first, second] = [a.czxid ?? 0n, b.czxid ?? 0n];
  return first < second ? -1 : first > second ? 1 : a.name < b.name ? -1 : 1;
}

/** Who is served first among contenders of ours: a more important one passes at most `PASS_PER_STEP` others per step. */
export function byOrder(a: Child, b: Child): number {
  const [first, second] = [keyOf(a), keyOf(b)];
  return first !== null && second !== null ? first - second || byArrival(a, b) : byArrival(a, b);
}

function keyOf({ sequence, contender }: Child): number | null {
  return sequence === null || contender === null ? null : sequence + PASS_PER_STEP * (PRIORITY_MAX - contender.priority);
}

/** As a sequence of the line in memory: past the end of the counter far enough apart that no priority matters. */
export function lineSequence({ sequence, czxid }: Child): number {
  return sequence ?? 2 ** 40 + Number(czxid ?? 0n) * 256;
}

import { hash } from 'node:crypto';
import { type Random, randomName } from '../domain/clock.ts';

/**
 * Lease and session ids are secrets of whoever made them; everybody else sees a ref, which is derived one way, so that the ref of
 * an id can always be computed and nothing that is stored or logged leads back to the id.
 */

const ID_BYTES = 24;
/** Of a lease id these are random, 144 bits; what follows says that the id is ours. */
const LEASE_ID_RANDOM_BYTES = 18;
const SEAL_CHARACTERS = 8;
/** 15 bytes in base64url. */
const REF_CHARACTERS = 20;
const LEASE_ID = /^(l([0-9a-z]{1,12})\.[A-Za-z0-9_-]{24})([A-Za-z0-9_-]{8})$/;

/** `epoch` names the start of the process, so that after a restart an id of an earlier one is recognised; `mark` whose process it was. */
export function newLeaseId(random: Random, epoch: string, mark: string): string {
  const made = `l${epoch}.${randomName(random, LEASE_ID_RANDOM_BYTES)}`;
  return `${made}${seal(mark, made)}`;
}

/**
 * The epoch in which a lease id was made; `null` when it is none of ours. Nothing hangs on this but how a lease that nobody knows is
 * called: so the marks need not be secret, and while there are none, every id of the form passes.
 */
export function madeIn(leaseId: string, marks: readonly string[]): string | null {
  const [, made, epoch, sealed] = LEASE_ID.exec(leaseId) ?? [];
  if (made === undefined || epoch === undefined) return null;
  return marks.length === 0 || marks.some((mark) => seal(mark, made) === sealed) ? epoch : null;
}

function seal(mark: string, made: string): string {
  return hash('sha256', `fencegate lease id\0${mark}\0${made}`, 'base64url').slice(0, SEAL_CHARACTERS);
}

export function newSessionId(random: Random): string {
  return `s.${randomName(random, ID_BYTES)}`;
}

export function newHoldId(random: Random): string {
  return `h.${randomName(random, 12)}`;
}

/** Names an announced break among the operations; no secret. */
export function newBreakId(random: Random): string {
  return `op_${randomName(random, 16)}`;
}

export function leaseRefOf(leaseId: string): string {
  return refOf('lease', leaseId);
}

export function sessionRefOf(sessionId: string): string {
  return refOf('session', sessionId);
}

function refOf(kind: string, secret: string): string {
  // In one call: each heartbeat of each session comes through here, and a hash object costs four times what it hashes.
  return hash('sha256', `fencegate ${kind}\0${secret}`, 'base64url').slice(0, REF_CHARACTERS);
}

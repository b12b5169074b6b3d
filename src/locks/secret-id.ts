import { hash } from 'node:crypto';
import { type Random, randomName } from '../domain/clock.ts';

/**
 * Lease and session ids are secrets of whoever made them; everybody else sees a ref, which is derived one way, so that the ref of
 * an id can always be computed and nothing that is stored or logged leads back to the id.
 */

const ID_BYTES = 24;
/** 15 bytes in base64url. */
const REF_CHARACTERS = 20;
const LEASE_ID = /^l([0-9a-z]{1,12})\.[A-Za-z0-9_-]{32}$/;

/** `epoch` names the start of the process, so that after a restart an id of an earlier one is recognised. */
export function newLeaseId(random: Random, epoch: string): string {
  return `l${epoch}.${randomName(random, ID_BYTES)}`;
}

/** The epoch in which a lease id was made; `null` when it is none of ours. */
export function epochOf(leaseId: string): string | null {
  return LEASE_ID.exec(leaseId)?.[1] ?? null;
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

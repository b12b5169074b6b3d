/**
 * Step 3, admission on headers alone (I5: a write refused here touches nothing on the volume, and its body is never asked for).
 * What is decided here is decided again in the commit section (I1).
 */
import { GatewayError, refuse } from '../domain/errors.ts';
import { type FencingToken, parseFencingToken } from '../domain/fencing-token.ts';
import type { TargetFacts } from '../domain/file-facts.ts';
import { foreignDetail, foreignMembers } from '../domain/foreign-contenders.ts';
import type { WriteLeases } from '../domain/lease.ts';
import { assertPortable } from '../domain/portable-name.ts';
import type { Resource } from '../domain/resource.ts';
import type { Place, Volume } from '../domain/volume.ts';
import type { WriteDeps } from './deps.ts';
import { judgeToken, toldAtAdmission } from './judge-token.ts';
import type { Operation } from './operation.ts';
import { preconditionVerdict } from './preconditions.ts';

/** The volume of a write, checked to be open for writes and its journal to be healthy. */
export function writableVolume(deps: WriteDeps, name: string): Volume {
  const volume = deps.volumes.get(name);
  if (volume.policy.path === null) throw refuse('invalid_request', 'This volume is lock-only: it has no files.');
  if (!deps.journal.healthy) throw journalUnavailable();
  volume.assertWritable();
  return volume;
}

function journalUnavailable(): GatewayError {
  return new GatewayError('journal_unavailable', { detail: 'The journal cannot be written; nothing was changed.', retryAfterMs: 5_000 });
}

/**
 * Judges the token of one resource.
 * @returns the token, or `null` for a token-less write that the volume's policy allows.
 */
export async function admitToken(
  deps: WriteDeps,
  operation: Operation,
  volume: Volume,
  resource: Resource,
  text: string | null,
): Promise<FencingToken | null> {
  if (text === null) return admitTokenless(deps, operation, volume, resource);
  const token = readToken(deps, operation, volume, resource, text);
  operation.presented = token;
  const facts = await deps.leases.facts(resource, token);
  const refusal = judgeToken(deps, operation, token, facts);
  const atMark = facts.atMark?.leaseRef ?? null;
  if (refusal !== null) {
    // Whose token it is; after a restart that is known at the mark only.
    operation.writesUnder(resource, deps.leases.leaseRefOf(resource, token) ?? (facts.mark === token ? atMark : null));
    throw await toldAtAdmission(deps, operation, { resource, token }, refusal);
  }
  operation.writesUnder(resource, atMark);
  return token;
}

function readToken(deps: WriteDeps, operation: Operation, volume: Volume, resource: Resource, text: string): FencingToken {
  if (volume.policy.tokens === 'issued') {
    const token = parseFencingToken(text);
    if (token === undefined) throw refuse('invalid_token', 'A fencing token is a decimal number from 1 to 2^63-1, without sign or leading zero.');
    return token;
  }
  const read = deps.leases.readSigned(text, resource, operation.envelope.caller.principal.name);
  if (read === 'invalid') throw refuse('invalid_token', 'This volume takes signed tokens: the signed_token of a lease, as it was given.');
  if (read === 'forged') throw refuse('token_not_issued', 'The signature of this token is not ours, or is for another resource or principal.');
  return read.token;
}

async function admitTokenless(deps: WriteDeps, operation: Operation, volume: Volume, resource: Resource): Promise<null> {
  const { requireToken } = volume.policy;
  if (operation.envelope.leaseId !== null && !operation.hasToken)
    throw tokenRequired('X-Lease-Id speaks of a lease, and the token of that lease is missing.');
  if (requireToken === 'true') throw tokenRequired('Writes to this volume carry a fencing token.');
  if (requireToken === 'once_leased' && (await deps.leases.facts(resource, null)).everNamed) {
    throw tokenRequired('This resource was leased before; since then its writes carry a fencing token.');
  }
  // With no patience at all, a client need not send a body that would only find the resource locked.
  if (operation.envelope.waitMs === 0) {
    const holder = deps.leases.holder(resource);
    if (holder !== null) throw locked(holder);
  }
  return null;
}

function tokenRequired(detail: string): GatewayError {
  return refuse('token_required', `${detail} Send it as X-Fencing-Token.`);
}

function locked({ clientId, queueLength, foreign }: NonNullable<ReturnType<WriteLeases['holder']>>): GatewayError {
  return new GatewayError('resource_locked', {
    detail: foreignDetail(foreign) ?? 'Somebody holds a lease on this resource.',
    members: { holder_client_id: clientId, queue_length: queueLength, ...foreignMembers(foreign) },
    retryAfterMs: 1_000,
  });
}

/** Locates the target and looks at it; `check` is the verb's own rule about what may be there. The caller closes the place. */
export async function admitTarget(
  operation: Operation,
  volume: Volume,
  resource: Resource,
  check: (target: TargetFacts | null) => void,
): Promise<{ place: Place; target: TargetFacts | null }> {
  const place = await volume.locate(resource);
  try {
    const target = await volume.look(place);
    checkTarget(operation, { volume, place, target }, check);
    return { place, target };
  } catch (error) {
    place.close();
    throw error;
  }
}

/** A place, and what a look has just found there. */
export interface Looked {
  readonly volume: Volume;
  readonly place: Place;
  readonly target: TargetFacts | null;
}

/** Judges the names that are to be made: what is there already, the file or a directory on the way to it, keeps its name, whatever it is. */
export function checkNewNames({ volume, place, target }: Looked): void {
  if (target !== null || volume.policy.names !== 'portable') return;
  for (const segment of [...place.missing, place.resource.path.slice(place.resource.path.lastIndexOf('/') + 1)]) assertPortable(segment);
}

/** The verb's rule, then the conditions, which RFC 9110 13.2 evaluates after it, then the names that would be made. */
export function checkTarget(operation: Operation, looked: Looked, check: (target: TargetFacts | null) => void): void {
  check(looked.target);
  const refusal = preconditionVerdict(looked.target, operation.envelope);
  if (refusal !== null) throw refusal;
  checkNewNames(looked);
}

/**
 * For an apply that found something at a name which was free when it was looked at: somebody beside the gateway was faster. What that is
 * to the client (a condition that failed, a name that exists), the rules of the look say; where they allow it, `error` stands.
 */
export async function refusalOfLateName(
  operation: Operation,
  { volume, place, check }: { readonly volume: Volume; readonly place: Place; readonly check: (target: TargetFacts | null) => void },
  error: unknown,
): Promise<unknown> {
  if (!(error instanceof GatewayError) || error.code !== 'already_exists') return error;
  const now = await volume.look(place).catch(() => null);
  try {
    if (now !== null) checkTarget(operation, { volume, place, target: now }, check);
    return error;
  } catch (refusal) {
    return refusal;
  }
}

/** 413 before the body when the declared length is over the volume's bound. */
export function checkDeclaredLength(volume: Volume, declaredBytes: number | null): void {
  const max = volume.policy.limits.bodyBytes;
  if (max !== null && declaredBytes !== null && declaredBytes > max) throw bodyTooLarge(max);
}

export function bodyTooLarge(max: number): GatewayError {
  return refuse('body_too_large', `The body is over ${max} bytes.`, { body_bytes_max: max });
}

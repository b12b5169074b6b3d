/** Step 4: bytes go to a new file in the incarnation directory. The lock of a token-less write is not held meanwhile. */
import { GatewayError, refuse } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import type { StagedFacts, TargetFacts } from '../domain/file-facts.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Resource } from '../domain/resource.ts';
import type { Place, Staging, Volume } from '../domain/volume.ts';
import type { ExpectedDigests } from '../domain/write.ts';
import { bodyTooLarge } from './admit.ts';
import type { WriteDeps } from './deps.ts';
import { judgedAgain } from './judge-token.ts';
import type { Operation } from './operation.ts';
import type { QuotaAccount } from './staged-quota.ts';

/** How often a running upload looks whether its lease still lives, and renews it when asked to: well within the shortest lease. */
const LEASE_CHECK_MS = LIMITS.leaseTtlMsMin / 4;

export interface StageRequest {
  readonly volume: Volume;
  readonly resource: Resource;
  /** The token whose lease must live on while bytes flow; `null` for token-less writes. */
  readonly token: FencingToken | null;
  readonly body: AsyncIterable<Uint8Array>;
  readonly quota: QuotaAccount;
  /** What was announced about these bytes; `null`: they are not the content of the request, whose digests were judged as it arrived. */
  readonly digests: ExpectedDigests | null;
  /** Bytes already reserved on the quota because the length was declared. */
  readonly reserved: boolean;
}

/**
 * Receives a whole body. The staged file is gone again when this rejects (I5).
 * Rejects with what the body or the volume says, or 412 when the lease ends while bytes flow.
 */
export async function stageBody(deps: WriteDeps, operation: Operation, request: StageRequest): Promise<Staging> {
  const { volume, digests } = request;
  await operation.reached('4.stage');
  const staging = await volume.stage({ sha512: digests !== null && wantsSha512(digests) });
  try {
    await receive(deps, operation, request, staging);
    if (digests !== null) assertDigests(staging, digests.content);
    await operation.reached('4.staged');
    return staging;
  } catch (error) {
    await staging.discard();
    throw error;
  }
}

async function receive(deps: WriteDeps, operation: Operation, request: StageRequest, staging: Staging): Promise<void> {
  const max = request.volume.policy.limits.bodyBytes;
  let nextCheckMs = deps.clock.monotonicMs() + LEASE_CHECK_MS;
  for await (const chunk of request.body) {
    operation.envelope.signal.throwIfAborted();
    if (max !== null && staging.bytesWritten + chunk.byteLength > max) throw bodyTooLarge(max);
    if (!request.reserved) request.quota.take(chunk.byteLength);
    await staging.write(chunk);
    if (request.token !== null && deps.clock.monotonicMs() >= nextCheckMs) {
      nextCheckMs = deps.clock.monotonicMs() + LEASE_CHECK_MS;
      await assertStillHeld(deps, operation, request.resource, request.token);
    }
  }
}

/** A long upload learns at once that its lease is over; with `X-Lease-Keepalive` the flowing bytes renew it. */
async function assertStillHeld(deps: WriteDeps, operation: Operation, resource: Resource, token: FencingToken): Promise<void> {
  if (operation.envelope.keepAlive && deps.leases.keepAlive(resource, token)) return;
  try {
    deps.leases.pin(resource, token).leave();
  } catch (thrown) {
    // The commit waits for contact; the bytes may arrive meanwhile.
    if (thrown instanceof GatewayError && thrown.code === 'coordinator_suspended') return;
    throw await judgedAgain(deps, operation, { resource, token }, thrown);
  }
}

/**
 * In the commit section, before anything is recorded: ends writing. Rejects with `volume_unavailable` when the volume has begun another
 * incarnation since then, whose start has emptied the directory in which the bytes are.
 */
export function sealStaged(volume: Volume, staging: Staging, replaces: TargetFacts | null, place: Place): Promise<StagedFacts> {
  if (staging.incarnation === volume.incarnation) return staging.seal(replaces, place);
  const detail = `The volume ${volume.name} was opened anew while the body arrived; nothing was changed.`;
  return Promise.reject(new GatewayError('volume_unavailable', { detail, retryAfterMs: LIMITS.volumeRetryMsMin }));
}

export function wantsSha512(digests: ExpectedDigests): boolean {
  return digests.content.sha512 !== undefined || digests.representation.sha512 !== undefined;
}

/** Compares what was sent with what was announced (RFC 9530). Throws `digest_mismatch`. */
export function assertDigests(staging: Staging, expected: { readonly sha256?: string; readonly sha512?: string }): void {
  const mismatch =
    (expected.sha256 !== undefined && expected.sha256 !== staging.digest('sha-256')) ||
    (expected.sha512 !== undefined && expected.sha512 !== staging.digest('sha-512'));
  if (mismatch) throw refuse('digest_mismatch', 'The bytes that arrived do not have the announced digest.');
}

import { asGatewayError, refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import type { OpenedFile, Staging, Volume } from '../domain/volume.ts';
import type { TransferRequest, WriteAnswer, WriteEnvelope } from '../domain/write.ts';
import { admitTarget, admitToken, checkDeclaredLength, writableVolume } from './admit.ts';
import type { WriteDeps } from './deps.ts';
import { type Operation, runOperation } from './operation.ts';
import { publishStaged } from './publish-staged.ts';
import { stageBody } from './stage-body.ts';
import { assertTwoResources, destinationRule, transferTokens } from './transfer-files.ts';
import { writeRight } from './write-lease.ts';

/** COPY: staged from one descriptor of the source, then as PUT. Reading needs no lease; a `from_token` that is sent must be good. */
export function copyFile(deps: WriteDeps, envelope: WriteEnvelope, request: TransferRequest): Promise<WriteAnswer> {
  return runOperation(deps, envelope, 'copy', request.to, (operation) => copy(deps, operation, request));
}

async function copy(deps: WriteDeps, operation: Operation, request: TransferRequest): Promise<WriteAnswer> {
  const { from, to } = request;
  await operation.reached('2.name');
  assertTwoResources(request);
  const source = deps.volumes.get(from.volume);
  const volume = writableVolume(deps, to.volume);
  if (source.policy.path === null) throw refuse('invalid_request', 'The source volume is lock-only: it has no files.');
  if (request.fromToken !== null) await admitToken(deps, operation, source, from, request.fromToken);
  const token = await admitToken(deps, operation, volume, to, transferTokens(operation, request).to);
  const rule = destinationRule(request.overwrite);
  const { place } = await admitTarget(operation, volume, to, rule);
  const quota = deps.quota.account(operation.envelope.caller.principal.name, volume.name, volume.policy.limits.stagedBytes);
  try {
    const staging = await stageSource(deps, operation, source, request, volume, token, quota);
    try {
      const right = await writeRight(deps, operation, [{ resource: to, token }]);
      try {
        const answer = await publishStaged(deps, operation, right, {
          volume,
          resource: to,
          admitted: place,
          staged: () => Promise.resolve(staging),
          check: rule,
          createOnly: !request.overwrite,
          digestKnown: true,
        });
        await operation.reached('7.answer');
        return { ...answer, replayed: false };
      } finally {
        right.release();
      }
    } catch (error) {
      if (!operation.intended) await staging.discard();
      throw error;
    }
  } finally {
    quota.close();
    place.close();
  }
}

type StageArguments = Parameters<typeof stageBody>[2];

async function stageSource(
  deps: WriteDeps,
  operation: Operation,
  source: Volume,
  request: TransferRequest,
  volume: Volume,
  token: StageArguments['token'],
  quota: StageArguments['quota'],
): Promise<Staging> {
  const opened = await source.open(request.from);
  try {
    checkDeclaredLength(volume, opened.facts.sizeBytes);
    quota.take(opened.facts.sizeBytes);
    await operation.reached('3.admit');
    return await stageBody(deps, operation, {
      volume,
      resource: request.to,
      token,
      body: wholeOf(opened, operation),
      digests: null,
      quota,
      reserved: true,
    });
  } finally {
    await opened.close();
  }
}

async function* wholeOf(opened: OpenedFile, operation: Operation): AsyncIterable<Uint8Array> {
  const { signal } = operation.envelope;
  const { sizeBytes } = opened.facts;
  for (let at = 0; at < sizeBytes; at += LIMITS.copyChunkBytes) {
    try {
      yield* opened.read(at, Math.min(sizeBytes, at + LIMITS.copyChunkBytes), signal);
    } catch (error) {
      throw asGatewayError(error);
    }
  }
}

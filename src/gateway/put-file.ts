import type { Resource } from '../domain/resource.ts';
import type { Body, WriteAnswer, WriteEnvelope } from '../domain/write.ts';
import { admitTarget, admitToken, checkDeclaredLength, writableVolume } from './admit.ts';
import type { WriteDeps } from './deps.ts';
import { type Operation, runOperation } from './operation.ts';
import { publishStaged } from './publish-staged.ts';
import { assertDigests, stageBody } from './stage-body.ts';
import { replaceable } from './target-rules.ts';
import { writeRight } from './write-lease.ts';

/** PUT: creates or replaces the whole file, `write-protocol.md` step by step. */
export function putFile(deps: WriteDeps, envelope: WriteEnvelope, resource: Resource, body: Body): Promise<WriteAnswer> {
  return runOperation(deps, envelope, 'put', resource, (operation) => put(deps, operation, resource, body));
}

async function put(deps: WriteDeps, operation: Operation, resource: Resource, body: Body): Promise<WriteAnswer> {
  const { envelope } = operation;
  await operation.reached('2.name');
  const volume = writableVolume(deps, resource.volume);
  checkDeclaredLength(volume, body.declaredBytes);
  const token = await admitToken(deps, operation, volume, resource, envelope.presentedToken);
  const { place } = await admitTarget(operation, volume, resource, replaceable);
  const quota = deps.quota.account(envelope.caller.principal.name, volume.name, volume.policy.limits.stagedBytes);
  try {
    if (body.declaredBytes !== null) quota.take(body.declaredBytes);
    await operation.reached('3.admit');
    const staging = await stageBody(deps, operation, {
      volume,
      resource,
      token,
      body: body.open(),
      digests: envelope.digests,
      quota,
      reserved: body.declaredBytes !== null,
    });
    try {
      assertDigests(staging, envelope.digests.representation);
      const right = await writeRight(deps, operation, [{ resource, token }]);
      try {
        const answer = await publishStaged(deps, operation, right, {
          volume,
          resource,
          admitted: place,
          staged: () => Promise.resolve(staging),
          createOnly: envelope.ifNoneMatch === '*',
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

/** PATCH: a range write (copy-on-write, or in place where the volume says so) or an append (in place, under a redo record). */
import { type GatewayError, refuse } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import { etagOf, sameVersion, type TargetFacts } from '../domain/file-facts.ts';
import type { ApplyPlan, Intent } from '../domain/intent.ts';
import type { StoredAnswer } from '../domain/journal.ts';
import type { Resource } from '../domain/resource.ts';
import type { Place, Staging, Volume } from '../domain/volume.ts';
import type { Body, RangeTarget, WriteAnswer, WriteEnvelope } from '../domain/write.ts';
import { admitTarget, admitToken, checkDeclaredLength, checkTarget, refusalOfLateName, writableVolume } from './admit.ts';
import { makeNamesDurable } from './applied.ts';
import { assertSameParent, commitSection, type Section } from './commit.ts';
import type { WriteDeps } from './deps.ts';
import { answerWithFile } from './file-answer.ts';
import { type Operation, runOperation } from './operation.ts';
import { publishStaged } from './publish-staged.ts';
import { assertDigests, sealStaged, stageBody, wantsSha512 } from './stage-body.ts';
import { existingFile, replaceable } from './target-rules.ts';
import { type WriteRight, writeRight } from './write-lease.ts';

export interface Patch {
  readonly target: RangeTarget;
  /** The size that the client believes the file has. */
  readonly uploadOffset: number | null;
}

export function patchFile(deps: WriteDeps, envelope: WriteEnvelope, resource: Resource, patch: Patch, body: Body): Promise<WriteAnswer> {
  const action = patch.target.kind === 'append' ? 'append' : 'patch';
  return runOperation(deps, envelope, action, resource, (operation) => run(deps, operation, resource, patch, body));
}

async function run(deps: WriteDeps, operation: Operation, resource: Resource, patch: Patch, body: Body): Promise<WriteAnswer> {
  const { envelope } = operation;
  await operation.reached('2.name');
  const volume = writableVolume(deps, resource.volume);
  checkDeclaredLength(volume, body.declaredBytes);
  checkRangeLength(patch.target, body.declaredBytes);
  const token = await admitToken(deps, operation, volume, resource, envelope.presentedToken);
  const check = patchRule(volume, patch);
  const { place } = await admitTarget(operation, volume, resource, check);
  const quota = deps.quota.account(envelope.caller.principal.name, volume.name, volume.policy.limits.stagedBytes);
  try {
    if (body.declaredBytes !== null) quota.take(body.declaredBytes);
    await operation.reached('3.admit');
    const staging = await stageBody(deps, operation, {
      volume,
      resource,
      token,
      body: body.open(),
      digests: operation.envelope.digests,
      quota,
      reserved: body.declaredBytes !== null,
    });
    try {
      checkRangeLength(patch.target, staging.bytesWritten);
      const right = await writeRight(deps, operation, [{ resource, token }]);
      try {
        const answer = await commitPatch(deps, operation, right, { volume, resource, admitted: place, staging, patch, check });
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

/** `bytes=a-b` names as many bytes as the body has. Throws `range_length_mismatch`. */
function checkRangeLength(target: RangeTarget, bytes: number | null): void {
  if (target.kind !== 'bytes' || target.end === null || bytes === null) return;
  const named = target.end - target.start + 1;
  if (named !== bytes) {
    throw refuse('range_length_mismatch', `The range names ${named} bytes, the body has ${bytes}.`, { range_bytes: named, body_bytes: bytes });
  }
}

/** What may be there: decided at admission, and again inside the section. */
function patchRule(volume: Volume, patch: Patch): (target: TargetFacts | null) => void {
  return (target) => {
    if (target !== null || patch.target.kind === 'bytes') existingFile(target);
    replaceable(target);
    if (target !== null && target.links > 1 && volume.policy.hardLinks === 'refuse') {
      throw refuse('multiple_links', 'The file has several names (hard links); changing it in part would change all of them.');
    }
    const sizeBytes = target?.sizeBytes ?? 0;
    if (patch.uploadOffset !== null && patch.uploadOffset !== sizeBytes) throw offsetMismatch(sizeBytes);
    if (patch.target.kind === 'bytes' && patch.target.start > sizeBytes) throw hole(sizeBytes);
  };
}

function offsetMismatch(sizeBytes: number): GatewayError {
  return refuse('offset_mismatch', `Upload-Offset is not the size of the file, which is ${sizeBytes}.`, { expected_offset: sizeBytes });
}

function hole(sizeBytes: number): GatewayError {
  return refuse('range_not_satisfiable', 'The range begins behind the end of the file and would leave a hole.', { size_bytes: sizeBytes });
}

interface Patching {
  readonly volume: Volume;
  readonly resource: Resource;
  readonly admitted: Place;
  readonly staging: Staging;
  readonly patch: Patch;
  readonly check: (target: TargetFacts | null) => void;
}

function commitPatch(deps: WriteDeps, operation: Operation, right: WriteRight, patching: Patching): Promise<StoredAnswer> {
  return changesInPlace(operation, patching) ? commitInPlace(deps, operation, right, patching) : commitCopy(deps, operation, right, patching);
}

/** A digest of the whole file can only be checked on a copy, before anything is visible. */
function changesInPlace(operation: Operation, { volume, patch }: Patching): boolean {
  const { sha256, sha512 } = operation.envelope.digests.representation;
  if (sha256 !== undefined || sha512 !== undefined || volume.policy.hardLinks === 'split') return false;
  return patch.target.kind === 'append' || volume.policy.rangeWrites === 'in-place';
}

/** Copy-on-write: the copy is made while the lease is held but before the section, and made again if the file changed meanwhile. */
async function commitCopy(deps: WriteDeps, operation: Operation, right: WriteRight, patching: Patching): Promise<StoredAnswer> {
  const { volume, resource, staging } = patching;
  const before = await volume.look(patching.admitted);
  let copy: { readonly of: TargetFacts; readonly staging: Staging } | null = null;
  if (before?.kind === 'file') copy = { of: before, staging: await overlaid(operation, patching, patching.admitted, before) };
  try {
    const answer = await publishStaged(deps, operation, right, {
      volume,
      resource,
      admitted: patching.admitted,
      staged: async (target, place) => {
        if (target === null) {
          // The file that an append makes is what was sent, and nothing else.
          assertDigests(staging, operation.envelope.digests.representation);
          return staging;
        }
        if (copy !== null && sameVersion(copy.of, target)) return copy.staging;
        await copy?.staging.discard();
        copy = { of: target, staging: await overlaid(operation, patching, place, target) };
        return copy.staging;
      },
      check: patching.check,
      createOnly: operation.envelope.ifNoneMatch === '*',
      digestKnown: wholeDigestWanted(operation),
    });
    return answer;
  } catch (error) {
    if (!operation.intended) await copy?.staging.discard();
    throw error;
  } finally {
    // The body itself is published only when there was nothing to copy; beside a copy it is done with, however the section ended.
    if (copy !== null) await staging.discard();
  }
}

function wholeDigestWanted(operation: Operation): boolean {
  const { sha256, sha512 } = operation.envelope.digests.representation;
  return sha256 !== undefined || sha512 !== undefined;
}

async function overlaid(operation: Operation, patching: Patching, place: Place, target: TargetFacts): Promise<Staging> {
  const { digests, signal } = operation.envelope;
  const offset = patching.patch.target.kind === 'append' ? target.sizeBytes : patching.patch.target.start;
  const copy = await patching.volume.stageCopy(
    place,
    target,
    { overlay: { staged: patching.staging, offset }, hash: wholeDigestWanted(operation), sha512: wantsSha512(digests) },
    signal,
  );
  try {
    if (wholeDigestWanted(operation)) assertDigests(copy, digests.representation);
    return copy;
  } catch (error) {
    await copy.discard();
    throw error;
  }
}

/** An append, or an `in-place` range: the staged bytes are the redo record. An append to a missing file creates it. */
async function commitInPlace(deps: WriteDeps, operation: Operation, right: WriteRight, patching: Patching): Promise<StoredAnswer> {
  const places: Place[] = [];
  const token = right.tokenOf(patching.resource);
  try {
    return await commitSection(deps, operation, right, () => decideInPlace(operation, token, patching, places));
  } finally {
    for (const place of places) place.close();
  }
}

async function decideInPlace(operation: Operation, token: FencingToken, patching: Patching, places: Place[]): Promise<Section> {
  const { volume, resource, staging } = patching;
  const place = await volume.locate(resource);
  places.push(place);
  assertSameParent(patching.admitted.parent, place.parent);
  const target = await volume.look(place);
  checkTarget(operation, { volume, place, target }, patching.check);
  const staged = await sealStaged(volume, staging, target, place);
  const plan = inPlacePlan(patching.patch, target, staging.bytesWritten, staged.mtimeNs);
  const after = target === null ? staged : afterInPlace(target, plan, staged.mtimeNs);
  const status = target === null ? 201 : 200;
  const intent: Intent = {
    operationId: operation.id,
    resource,
    before: target,
    staged,
    plan,
    incarnation: volume.incarnation,
    audit: operation.draft(resource, {
      outcome: 'committed',
      status,
      fencingToken: token,
      highWaterMark: token,
      sizeBytes: after.sizeBytes,
      etagBefore: target === null ? null : etagOf(target),
      etagAfter: etagOf(after),
      fenceLevel: volume.fenceLevel,
    }),
  };
  return {
    volume,
    intents: [intent],
    companions: [],
    sync: async () => {
      await staging.sync();
      if (target !== null) await volume.writeRedo(intent);
    },
    apply: () => applyInPlace(operation, patching, intent, place, places),
    discard: () => staging.discard(),
    discardForGood: () => staging.discardForGood(),
    answer: answerWithFile(operation, volume, status, { resource, facts: after, sha256: null, token }),
  };
}

function inPlacePlan(patch: Patch, target: TargetFacts | null, lengthBytes: number, mtimeNs: bigint): ApplyPlan {
  if (target === null) return { kind: 'create' };
  if (patch.target.kind === 'append') return { kind: 'append', offset: target.sizeBytes, lengthBytes, mtimeNs };
  return { kind: 'in_place', offset: patch.target.start, lengthBytes, mtimeNs };
}

/** The facts that the file will have: its mtime is set by us, so the ETag is known before the bytes are written. */
function afterInPlace(target: TargetFacts, plan: ApplyPlan, mtimeNs: bigint): TargetFacts {
  const end = plan.kind === 'append' || plan.kind === 'in_place' ? plan.offset + plan.lengthBytes : 0;
  return { ...target, sizeBytes: Math.max(target.sizeBytes, end), mtimeNs };
}

/** Bytes of an append that is not settled are hidden from readers (I3). */
async function applyInPlace(operation: Operation, patching: Patching, intent: Intent, place: Place, places: Place[]): Promise<void> {
  const { volume, check } = patching;
  let under = place;
  if (under.parent === null) {
    under = await volume.makeParents(under);
    places.push(under);
  }
  if (intent.plan.kind === 'append' && intent.before !== null) volume.limitVisible(intent.resource, intent.before.sizeBytes);
  try {
    await volume.apply(intent, under, null);
  } catch (error) {
    throw await refusalOfLateName(operation, { volume, place: under, check }, error);
  }
  await makeNamesDurable(operation, volume, [under]);
}

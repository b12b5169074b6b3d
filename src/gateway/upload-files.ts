/**
 * Several files in one multipart request, all or nothing: every file is staged, every name is leased, a manifest is durable, one
 * unit has all intents; only then is the first file applied. A reader may meet the middle, the end states are all or none (I3 per file).
 */
import { asGatewayError, GatewayError, refuse } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import { etagOf } from '../domain/file-facts.ts';
import type { Intent } from '../domain/intent.ts';
import type { StoredAnswer } from '../domain/journal.ts';
import { LIMITS } from '../domain/limits.ts';
import { assertSegment, inCanonicalOrder, isHiddenSegment, type Resource, resourceOf } from '../domain/resource.ts';
import type { Place, Staging, Volume } from '../domain/volume.ts';
import type { FileAnswer, UploadBody, UploadPart, WriteAnswer, WriteEnvelope } from '../domain/write.ts';
import { admitTarget, admitToken, checkDeclaredLength, checkTarget, refusalOfLateName, writableVolume } from './admit.ts';
import { makeNamesDurable } from './applied.ts';
import { assertSameParent, commitSection, type Section } from './commit.ts';
import type { WriteDeps } from './deps.ts';
import { answerHeaders, fileAnswer } from './file-answer.ts';
import { type Operation, runOperation } from './operation.ts';
import { sealStaged, stageBody } from './stage-body.ts';
import type { QuotaAccount } from './staged-quota.ts';
import { replaceable } from './target-rules.ts';
import { type WriteRight, writeRight } from './write-lease.ts';

export interface UploadTarget {
  readonly volume: string;
  /** `null`: the root of the volume. */
  readonly directory: Resource | null;
}

export function uploadFiles(deps: WriteDeps, envelope: WriteEnvelope, target: UploadTarget, body: UploadBody): Promise<WriteAnswer> {
  const subject = { volume: target.volume, path: target.directory?.path ?? '' };
  return runOperation(deps, envelope, 'upload', subject, (operation) => upload(deps, operation, target, body));
}

/** One part: received, staged, its name admitted. */
interface Arrived {
  readonly resource: Resource;
  readonly token: FencingToken | null;
  readonly place: Place;
  readonly staging: Staging;
}

async function upload(deps: WriteDeps, operation: Operation, target: UploadTarget, body: UploadBody): Promise<WriteAnswer> {
  const { envelope } = operation;
  await operation.reached('2.name');
  const volume = writableVolume(deps, target.volume);
  checkDeclaredLength(volume, body.declaredBytes);
  if (envelope.presentedToken === null && volume.policy.requireToken === 'true') {
    throw refuse('token_required', 'Writes to this volume carry a fencing token. Send it as X-Fencing-Token.');
  }
  const quota = deps.quota.account(envelope.caller.principal.name, volume.name, volume.policy.limits.stagedBytes);
  const arrived: Arrived[] = [];
  const names = new Set<string>();
  try {
    await operation.reached('3.admit');
    for await (const part of body.open()) {
      const one = await receivePart(deps, operation, { volume, target, part, quota, names });
      names.add(one.resource.key);
      arrived.push(one);
    }
    if (arrived.length === 0) throw refuse('invalid_request', 'The upload has no file.');
    const right = await writeRight(deps, operation, arrived);
    try {
      const answer = await commitUpload(deps, operation, right, volume, arrived);
      await operation.reached('7.answer');
      return { ...answer, replayed: false };
    } finally {
      right.release();
    }
  } catch (error) {
    if (!operation.intended) for (const { staging } of arrived) await staging.discard();
    throw error;
  } finally {
    quota.close();
    for (const { place } of arrived) place.close();
  }
}

interface Receiving {
  readonly volume: Volume;
  readonly target: UploadTarget;
  readonly part: UploadPart;
  readonly quota: QuotaAccount;
  readonly names: ReadonlySet<string>;
}

async function receivePart(deps: WriteDeps, operation: Operation, receiving: Receiving): Promise<Arrived> {
  const { volume, part, names } = receiving;
  if (names.size >= LIMITS.multipartFilesMax) throw refuse('invalid_request', `An upload has at most ${LIMITS.multipartFilesMax} files.`);
  const resource = partResource(receiving);
  if (names.has(resource.key)) throw refuse('invalid_path', 'Two files of the upload have the same name.');
  const token = await admitToken(deps, operation, volume, resource, operation.envelope.presentedToken);
  const { place } = await admitTarget(operation, volume, resource, replaceable);
  try {
    const staging = await stageBody(deps, operation, {
      volume,
      resource,
      token,
      body: part.body,
      digests: null,
      quota: receiving.quota,
      reserved: false,
    });
    return { resource, token, place, staging };
  } catch (error) {
    place.close();
    throw error;
  }
}

/** The part's file name is one plain name: it never picks a directory (trap F20). */
function partResource({ volume, target, part }: Receiving): Resource {
  if (part.filename === undefined) throw refuse('invalid_request', 'A part of the upload has no filename.');
  assertSegment(part.filename);
  if (isHiddenSegment(part.filename)) throw refuse('invalid_path', 'This name belongs to the gateway.');
  const parents = target.directory === null ? [] : target.directory.path.split('/');
  return resourceOf(target.volume, [...parents, part.filename], volume.folds);
}

async function commitUpload(
  deps: WriteDeps,
  operation: Operation,
  right: WriteRight,
  volume: Volume,
  arrived: readonly Arrived[],
): Promise<StoredAnswer> {
  const places: Place[] = [];
  const of = new Map(arrived.map((file) => [file.resource.key, file]));
  const ordered = inCanonicalOrder(arrived.map((file) => file.resource)).flatMap(({ key }) => of.get(key) ?? []);
  try {
    return await commitSection(deps, operation, right, () => decide(operation, right, volume, ordered, places));
  } finally {
    for (const place of places) place.close();
  }
}

async function decide(operation: Operation, right: WriteRight, volume: Volume, files: readonly Arrived[], places: Place[]): Promise<Section> {
  const intents: Intent[] = [];
  const answers: FileAnswer[] = [];
  const located: Place[] = [];
  for (const file of files) {
    const { intent, answer, place } = await decideFile(operation, right.tokenOf(file.resource), volume, file, places);
    intents.push(intent);
    answers.push(answer);
    located.push(place);
  }
  const created = intents.every((intent) => intent.before === null);
  const [first] = right.grants;
  if (first === undefined) throw new Error('an upload has at least one grant');
  return {
    volume,
    intents,
    companions: [],
    prepare: async () => {
      await syncStaged(files);
      await volume.writeManifest(operation.id, intents, located);
    },
    sync: () => Promise.resolve(),
    apply: () => applyAll(operation, volume, intents, located, places),
    discard: async () => {
      for (const file of files) await file.staging.discard();
    },
    discardForGood: async () => {
      let allGone = true;
      for (const file of files) allGone = (await file.staging.discardForGood()) && allGone;
      return allGone;
    },
    answer: { status: created ? 201 : 200, headers: answerHeaders(operation, first.token), body: { operation_id: operation.id, files: answers } },
  };
}

async function decideFile(operation: Operation, token: FencingToken, volume: Volume, file: Arrived, places: Place[]) {
  const { resource, staging } = file;
  const place = await volume.locate(resource);
  places.push(place);
  assertSameParent(file.place.parent, place.parent);
  const target = await volume.look(place);
  checkTarget(operation, { volume, place, target }, replaceable);
  const staged = await sealStaged(volume, staging, target, place);
  const intent: Intent = {
    operationId: operation.id,
    resource,
    before: target,
    staged,
    plan: { kind: 'several', manifest: `manifest-${operation.id}` },
    incarnation: volume.incarnation,
    audit: operation.draft(resource, {
      outcome: 'committed',
      status: target === null ? 201 : 200,
      fencingToken: token,
      highWaterMark: token,
      sizeBytes: staged.sizeBytes,
      digest: staged.sha256,
      etagBefore: target === null ? null : etagOf(target),
      etagAfter: etagOf(staged),
      fenceLevel: volume.fenceLevel,
    }),
  };
  return { intent, answer: fileAnswer(operation, volume, { resource, facts: staged, sha256: staged.sha256, token }), place };
}

/** A definite failure half-way is undone by looking at the manifest: `settle` restores the old files. */
async function applyAll(operation: Operation, volume: Volume, intents: readonly Intent[], located: readonly Place[], places: Place[]): Promise<void> {
  const under: Place[] = [];
  try {
    for (const [index, intent] of intents.entries()) {
      let place = located[index];
      if (place === undefined) throw new Error('each intent has its place');
      if (place.parent === null) {
        place = await volume.makeParents(place);
        places.push(place);
      }
      await applyOne(operation, volume, intent, place);
      under.push(place);
    }
  } catch (error) {
    throw under.length === 0 ? error : await undone(volume, intents, asGatewayError(error));
  }
  await makeNamesDurable(operation, volume, distinctParents(under));
}

async function applyOne(operation: Operation, volume: Volume, intent: Intent, place: Place): Promise<void> {
  try {
    await volume.apply(intent, place, null);
  } catch (error) {
    throw await refusalOfLateName(operation, { volume, place, check: replaceable }, error);
  }
}

/** Side by side, but few at once: a thousand syncs would take every place in the volume's lane from the writes of others. */
async function syncStaged(files: readonly Arrived[]): Promise<void> {
  const left = files.values();
  const syncNext = async (): Promise<void> => {
    for (const { staging } of left) await staging.sync();
  };
  await Promise.all(Array.from({ length: LIMITS.uploadSyncsMax }, syncNext));
}

/** One place of each directory: the files of an upload lie in one, and one sync makes all their names durable. */
function distinctParents(places: readonly Place[]): readonly Place[] {
  const parents = new Map<string, Place>();
  for (const place of places) parents.set(place.parent === null ? '' : `${place.parent.dev}:${place.parent.ino}`, place);
  return [...parents.values()];
}

/**
 * The files that were applied before the failure are put back; when that cannot be shown, the outcome is unknown (I3): also when putting back
 * failed for a reason that is definite for itself, as on a file system that became read-only half-way.
 */
async function undone(volume: Volume, intents: readonly Intent[], error: GatewayError): Promise<GatewayError> {
  if (error.code === 'outcome_unknown') return error;
  const unknown = (cause: unknown): GatewayError =>
    new GatewayError('outcome_unknown', { detail: 'Some files of the upload were written and could not be put back yet.', cause });
  try {
    return (await volume.restore(intents)) ? error : unknown(error);
  } catch (thrown) {
    return unknown(new AggregateError([error, thrown]));
  }
}

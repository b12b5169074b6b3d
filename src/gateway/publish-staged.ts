/** Steps 5 to 7 for one staged file that becomes the whole target: PUT, COPY, copy-on-write ranges, an append that creates. */
import { GatewayError } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import { etagOf, type TargetFacts } from '../domain/file-facts.ts';
import type { Intent } from '../domain/intent.ts';
import type { StoredAnswer } from '../domain/journal.ts';
import type { Resource } from '../domain/resource.ts';
import type { Place, Staging, Volume } from '../domain/volume.ts';
import { checkTarget, refusalOfLateName } from './admit.ts';
import { makeNamesDurable } from './applied.ts';
import { assertSameParent, commitSection, type Section } from './commit.ts';
import type { WriteDeps } from './deps.ts';
import { answerWithFile } from './file-answer.ts';
import type { Operation } from './operation.ts';
import { sealStaged } from './stage-body.ts';
import { replaceable } from './target-rules.ts';
import type { WriteRight } from './write-lease.ts';

export interface Publication {
  readonly volume: Volume;
  readonly resource: Resource;
  /** The place at admission; its parent must still be the one there. */
  readonly admitted: Place;
  /** The staged file, given what is at the target now; called inside the section. */
  readonly staged: (target: TargetFacts | null, place: Place) => Promise<Staging>;
  /** Extra rule of the verb about the target, checked inside the section. */
  readonly check?: (target: TargetFacts | null) => void;
  /** True when only a missing target may be written (`If-None-Match: *`, a transfer without overwrite). */
  readonly createOnly: boolean;
  /** False when the digest of the whole file is not known. */
  readonly digestKnown: boolean;
}

/** Commits a staged file. The staged file is gone when this rejects, unless the outcome is unknown. */
export async function publishStaged(deps: WriteDeps, operation: Operation, right: WriteRight, publication: Publication): Promise<StoredAnswer> {
  const places: Place[] = [];
  try {
    return await commitSection(deps, operation, right, () => decide(deps, operation, right.tokenOf(publication.resource), publication, places));
  } finally {
    for (const place of places) place.close();
  }
}

async function decide(deps: WriteDeps, operation: Operation, token: FencingToken, publication: Publication, places: Place[]): Promise<Section> {
  const { volume, resource } = publication;
  const place = await volume.locate(resource);
  places.push(place);
  assertSameParent(publication.admitted.parent, place.parent);
  const target = await volume.look(place);
  checkTarget(operation, { volume, place, target }, (now) => {
    replaceable(now);
    publication.check?.(now);
  });
  const staging = await publication.staged(target, place);
  const staged = await sealStaged(volume, staging, target, place);
  const status = target === null ? 201 : 200;
  const sha256 = publication.digestKnown ? staged.sha256 : null;
  const intent: Intent = {
    operationId: operation.id,
    resource,
    before: target,
    staged,
    plan: { kind: publication.createOnly ? 'create' : 'replace' },
    incarnation: volume.incarnation,
    audit: operation.draft(resource, {
      outcome: 'committed',
      status,
      fencingToken: token,
      highWaterMark: token,
      sizeBytes: staged.sizeBytes,
      digest: sha256,
      etagBefore: target === null ? null : etagOf(target),
      etagAfter: etagOf(staged),
      fenceLevel: volume.fenceLevel,
    }),
  };
  return {
    volume,
    intents: [intent],
    companions: [],
    sync: () => staging.sync(),
    apply: async () => {
      await applyUnderParent(operation, publication, intent, place, places);
      if (sha256 !== null) deps.digests.committed(resource, staged, sha256);
    },
    discard: () => staging.discard(),
    discardForGood: () => staging.discardForGood(),
    answer: answerWithFile(operation, volume, status, { resource, facts: staged, sha256, token }),
  };
}

/** Missing parents are made after the intent; a parent that vanished in between is made once more, then it is an error. */
async function applyUnderParent(operation: Operation, publication: Publication, intent: Intent, place: Place, places: Place[]): Promise<void> {
  const { volume } = publication;
  let under = place;
  if (under.parent === null) under = await madeParents(volume, under, places);
  try {
    await volume.apply(intent, under, null);
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'not_found') throw await lateRefusal(operation, publication, under, error);
    under = await madeParents(volume, under, places);
    await volume.apply(intent, under, null).catch(async (again: unknown) => {
      throw await lateRefusal(operation, publication, under, again);
    });
  }
  await makeNamesDurable(operation, volume, [under]);
}

async function madeParents(volume: Volume, place: Place, places: Place[]): Promise<Place> {
  const made = await volume.makeParents(place);
  places.push(made);
  return made;
}

function lateRefusal(operation: Operation, { volume, check }: Publication, place: Place, error: unknown): Promise<unknown> {
  return refusalOfLateName(operation, { volume, place, check: check ?? replaceable }, error);
}

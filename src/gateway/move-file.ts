/**
 * MOVE of a file inside one volume, under a manifest: the bytes are at the old or the new name at every instant (I3), and both
 * names are leased. The old name keeps its mark: a late writer of the old name meets it (trap F25).
 */
import { refuse } from '../domain/errors.ts';
import { etagOf, type TargetFacts } from '../domain/file-facts.ts';
import type { Intent } from '../domain/intent.ts';
import type { StoredAnswer } from '../domain/journal.ts';
import type { Place, Volume } from '../domain/volume.ts';
import type { TransferRequest, WriteAnswer, WriteEnvelope } from '../domain/write.ts';
import { admitTarget, admitToken, checkNewNames, checkTarget, writableVolume } from './admit.ts';
import { makeNamesDurable } from './applied.ts';
import { assertSameParent, commitSection, type Section } from './commit.ts';
import type { WriteDeps } from './deps.ts';
import { answerWithFile } from './file-answer.ts';
import { type Operation, runOperation } from './operation.ts';
import { existingFile, replaceable } from './target-rules.ts';
import { assertTwoResources, destinationRule, transferTokens } from './transfer-files.ts';
import { type WriteRight, writeRight } from './write-lease.ts';

export function moveFile(deps: WriteDeps, envelope: WriteEnvelope, request: TransferRequest): Promise<WriteAnswer> {
  return runOperation(deps, envelope, 'move', request.to, (operation) => move(deps, operation, request));
}

interface Moving {
  readonly volume: Volume;
  readonly request: TransferRequest;
  readonly admittedFrom: Place;
  readonly admittedTo: Place;
}

async function move(deps: WriteDeps, operation: Operation, request: TransferRequest): Promise<WriteAnswer> {
  await operation.reached('2.name');
  assertTwoResources(request);
  const volume = writableVolume(deps, request.to.volume);
  if (request.from.volume !== volume.name) throw refuse('cross_volume', 'A move stays inside one volume; copy and delete instead.');
  const tokens = transferTokens(operation, request);
  const fromToken = await admitToken(deps, operation, volume, request.from, tokens.from);
  const toToken = await admitToken(deps, operation, volume, request.to, tokens.to);
  const places: Place[] = [];
  try {
    places.push((await admitTarget(operation, volume, request.from, sourceRule)).place);
    const { place: admittedTo } = await admitDestination(volume, request, places);
    const [admittedFrom] = places;
    if (admittedFrom === undefined) throw new Error('the source was located');
    await operation.reached('3.admit');
    const right = await writeRight(deps, operation, [
      { resource: request.from, token: fromToken },
      { resource: request.to, token: toToken },
    ]);
    try {
      const moving = { volume, request, admittedFrom, admittedTo };
      const answer = await commitSection(deps, operation, right, () => decide(deps, operation, right, moving, places));
      await operation.reached('7.answer');
      return { ...answer, replayed: false };
    } finally {
      right.release();
    }
  } finally {
    for (const place of places) place.close();
  }
}

/** Conditions (`If-Match`) speak about the file that moves. */
function sourceRule(target: TargetFacts | null): void {
  existingFile(target);
  replaceable(target);
}

async function admitDestination(volume: Volume, request: TransferRequest, places: Place[]): Promise<{ place: Place; target: TargetFacts | null }> {
  const place = await volume.locate(request.to);
  places.push(place);
  const target = await volume.look(place);
  destinationRule(request.overwrite)(target);
  checkNewNames({ volume, place, target });
  return { place, target };
}

async function decide(deps: WriteDeps, operation: Operation, right: WriteRight, moving: Moving, places: Place[]): Promise<Section> {
  const { volume, request } = moving;
  const from = await volume.locate(request.from);
  places.push(from);
  assertSameParent(moving.admittedFrom.parent, from.parent);
  const source = await volume.look(from);
  checkTarget(operation, { volume, place: from, target: source }, sourceRule);
  existingFile(source);
  const { place: to, target } = await admitDestination(volume, request, places);
  assertSameParent(moving.admittedTo.parent, to.parent);
  if (target?.ino === source.ino) throw refuse('same_resource', 'The two names are hard links to one file.');
  const moved = { source, target, sha256: await deps.digests.digestOf(request.from, etagOf(source)) };
  const intent = moveIntent(operation, right, moving, moved);
  const { answer, companion } = moveAnswer(operation, right, moving, moved);
  let under = to;
  return {
    volume,
    intents: [intent],
    companions: [companion],
    prepare: () => volume.writeManifest(operation.id, [intent], [to]),
    sync: () => Promise.resolve(),
    apply: async () => {
      if (under.parent === null) {
        under = await volume.makeParents(under);
        places.push(under);
      }
      await volume.apply(intent, under, from);
      await makeNamesDurable(operation, volume, [under, from]);
    },
    discard: () => Promise.resolve(),
    discardForGood: () => Promise.resolve(false),
    answer,
  };
}

/** What is moved, over what; the digest goes along where a commit of ours is known to have made this version. */
interface Moved {
  readonly source: TargetFacts;
  readonly target: TargetFacts | null;
  readonly sha256: string | null;
}

function moveIntent(operation: Operation, right: WriteRight, moving: Moving, { source, target, sha256 }: Moved): Intent {
  const { volume, request } = moving;
  const token = right.tokenOf(request.to);
  return {
    operationId: operation.id,
    resource: request.to,
    before: target,
    staged: null,
    plan: { kind: 'move', from: request.from, source, manifest: `manifest-${operation.id}` },
    incarnation: volume.incarnation,
    audit: operation.draft(request.to, {
      outcome: 'committed',
      status: target === null ? 201 : 200,
      fencingToken: token,
      highWaterMark: token,
      sizeBytes: source.sizeBytes,
      digest: sha256,
      etagBefore: target === null ? null : etagOf(target),
      etagAfter: etagOf(source),
      fenceLevel: volume.fenceLevel,
    }),
  };
}

/** The answer, and the record of the old name: an auditor who looks for that path finds where it went by the operation id. */
function moveAnswer(
  operation: Operation,
  right: WriteRight,
  moving: Moving,
  { source, target, sha256 }: Moved,
): { readonly answer: StoredAnswer; readonly companion: Intent['audit'] } {
  const { volume, request } = moving;
  const status = target === null ? 201 : 200;
  const fromToken = right.tokenOf(request.from);
  return {
    answer: answerWithFile(operation, volume, status, { resource: request.to, facts: source, sha256, token: right.tokenOf(request.to) }),
    companion: operation.draft(request.from, {
      outcome: 'committed',
      status,
      fencingToken: fromToken,
      highWaterMark: fromToken,
      etagBefore: etagOf(source),
      fenceLevel: volume.fenceLevel,
    }),
  };
}

/** Steps 2 to 7 for writes without a body that change one name: DELETE, and making or removing a directory. */
import type { AuditAction } from '../domain/audit-record.ts';
import { asGatewayError } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import { etagOf, type TargetFacts } from '../domain/file-facts.ts';
import type { ApplyPlan, Intent } from '../domain/intent.ts';
import type { StoredAnswer } from '../domain/journal.ts';
import type { Resource } from '../domain/resource.ts';
import type { Place, Volume } from '../domain/volume.ts';
import type { WriteAnswer, WriteEnvelope } from '../domain/write.ts';
import { admitTarget, admitToken, checkTarget, refusalOfLateName, writableVolume } from './admit.ts';
import { makeNamesDurable } from './applied.ts';
import { assertSameParent, commitSection, type Section } from './commit.ts';
import type { WriteDeps } from './deps.ts';
import { answerHeaders } from './file-answer.ts';
import { type Operation, runOperation } from './operation.ts';
import { directoryOrAbsent, existingDirectory, existingFile } from './target-rules.ts';
import { type WriteRight, writeRight } from './write-lease.ts';

interface NameChange {
  readonly action: AuditAction;
  readonly check: (target: TargetFacts | null) => void;
  readonly plan: (operation: Operation) => ApplyPlan;
  readonly status: (target: TargetFacts | null) => number;
  readonly makesParents: boolean;
}

/** DELETE of a file: it is renamed into the incarnation directory, which the storage refuses to a superseded process. */
const REMOVE_FILE: NameChange = {
  action: 'delete',
  check: existingFile,
  plan: (operation) => ({ kind: 'remove', trash: `trash-${operation.id}` }),
  status: () => 204,
  makesParents: false,
};

const MAKE_DIRECTORY: NameChange = {
  action: 'mkdir',
  check: directoryOrAbsent,
  plan: () => ({ kind: 'mkdir' }),
  status: (target) => (target === null ? 201 : 204),
  makesParents: true,
};

const REMOVE_DIRECTORY: NameChange = {
  action: 'delete',
  check: existingDirectory,
  plan: () => ({ kind: 'rmdir' }),
  status: () => 204,
  makesParents: false,
};

export function deleteFile(deps: WriteDeps, envelope: WriteEnvelope, resource: Resource): Promise<WriteAnswer> {
  return changeName(deps, envelope, resource, REMOVE_FILE);
}

export function makeDirectory(deps: WriteDeps, envelope: WriteEnvelope, resource: Resource): Promise<WriteAnswer> {
  return changeName(deps, envelope, resource, MAKE_DIRECTORY);
}

export function removeDirectory(deps: WriteDeps, envelope: WriteEnvelope, resource: Resource): Promise<WriteAnswer> {
  return changeName(deps, envelope, resource, REMOVE_DIRECTORY);
}

function changeName(deps: WriteDeps, envelope: WriteEnvelope, resource: Resource, change: NameChange): Promise<WriteAnswer> {
  return runOperation(deps, envelope, change.action, resource, async (operation) => {
    await operation.reached('2.name');
    const volume = writableVolume(deps, resource.volume);
    const token = await admitToken(deps, operation, volume, resource, envelope.presentedToken);
    const { place } = await admitTarget(operation, volume, resource, change.check);
    try {
      await operation.reached('3.admit');
      const right = await writeRight(deps, operation, [{ resource, token }]);
      try {
        const answer = await commitChange(deps, operation, right, { volume, resource, admitted: place, change });
        await operation.reached('7.answer');
        return { ...answer, replayed: false };
      } finally {
        right.release();
      }
    } finally {
      place.close();
    }
  });
}

interface Changing {
  readonly volume: Volume;
  readonly resource: Resource;
  readonly admitted: Place;
  readonly change: NameChange;
}

async function commitChange(deps: WriteDeps, operation: Operation, right: WriteRight, changing: Changing): Promise<StoredAnswer> {
  const places: Place[] = [];
  try {
    return await commitSection(deps, operation, right, () => decide(operation, right.tokenOf(changing.resource), changing, places));
  } finally {
    for (const place of places) place.close();
  }
}

async function decide(operation: Operation, token: FencingToken, changing: Changing, places: Place[]): Promise<Section> {
  const { volume, resource, change } = changing;
  const place = await volume.locate(resource);
  places.push(place);
  assertSameParent(changing.admitted.parent, place.parent);
  const target = await volume.look(place);
  checkTarget(operation, { volume, place, target }, change.check);
  const status = change.status(target);
  const intent: Intent = {
    operationId: operation.id,
    resource,
    before: target,
    staged: null,
    plan: change.plan(operation),
    incarnation: volume.incarnation,
    audit: operation.draft(resource, {
      outcome: 'committed',
      status,
      fencingToken: token,
      highWaterMark: token,
      etagBefore: target?.kind === 'file' ? etagOf(target) : null,
      fenceLevel: volume.fenceLevel,
    }),
  };
  const apply = async (): Promise<void> => {
    let under = place;
    if (under.parent === null && change.makesParents) {
      under = await volume.makeParents(under);
      places.push(under);
    }
    // A directory that is there already is what was asked for.
    if (change !== MAKE_DIRECTORY || target === null) await applyOne(operation, changing, intent, under);
    await makeNamesDurable(operation, volume, [under]);
  };
  return {
    volume,
    intents: [intent],
    companions: [],
    sync: () => Promise.resolve(),
    apply,
    discard: () => Promise.resolve(),
    discardForGood: () => Promise.resolve(false),
    answer: { status, headers: answerHeaders(operation, token), body: status === 201 ? directoryAnswer(operation, volume, resource, token) : null },
  };
}

async function applyOne(operation: Operation, { volume, change }: Changing, intent: Intent, place: Place): Promise<void> {
  try {
    await volume.apply(intent, place, null);
  } catch (error) {
    // An upload beside it may have made the directory a moment ago.
    if (change === MAKE_DIRECTORY && asGatewayError(error).code === 'already_exists' && (await volume.look(place))?.kind === 'directory') return;
    throw await refusalOfLateName(operation, { volume, place, check: change.check }, error);
  }
}

function directoryAnswer(operation: Operation, volume: Volume, resource: Resource, token: FencingToken) {
  return {
    resource: resource.name,
    volume: resource.volume,
    path: resource.path,
    size_bytes: null,
    etag: null,
    digest: null,
    fencing_token: token.toString(),
    lease_ref: operation.leaseRefOf(resource),
    operation_id: operation.id,
    durability: 'synced',
    fence_level: volume.fenceLevel,
  };
}

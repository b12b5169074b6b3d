import { constants } from 'node:fs';
import { GatewayError } from '../../domain/errors.ts';
import type { VolumeFinding } from '../../domain/recovery.ts';
import { VolumeTaken, type VolumeTitle } from '../../domain/volume-title.ts';
import { at, type Descriptor } from '../descriptor.ts';
import { DirectorySync } from '../directory-sync.ts';
import { errnoOf } from '../errno.ts';
import { Litter } from '../litter.ts';
import { ClearStopped } from './clear-incarnation.ts';
import { clearOldDirectories } from './clear-old-directories.ts';
import { IncarnationDirectory } from './incarnation-directory.ts';
import { openStamp, stampFindings } from './opened-stamp.ts';
import { assertInNoOther, refusingOthers } from './other-volumes.ts';
import { OwnerUnreadable, takeOwnership } from './owner-file.ts';
import { recoverVolume } from './recover-volume.ts';
import { removeEmptyDirectory } from './remove-empty-directory.ts';
import { readStamp, StampUnreadable } from './stamp.ts';
import type { ProbeFacts, StartContext, StartMode, VolumeStartDeps } from './start-deps.ts';
import { StartRefused, type VolumeStartResult } from './start-report.ts';
import { noLife, volumeLife } from './volume-life.ts';
import { CONTROL_DIRECTORY } from './volume-names.ts';
import { ownerOf } from './volume-owner.ts';
import { OPEN_DIRECTORY } from './whole-file.ts';

const ROOT_FLAGS = constants.O_RDONLY | constants.O_DIRECTORY;

/**
 * Starts one volume, at start and at take-over in the same order (`write-protocol.md`, "Recovery at start"): whose it is, what its
 * stamp says, make and publish the own directory, empty and remove every old one, only then compare and finish intents, sweep.
 * Never rejects for what is wrong with the volume; rejects with `journal_unavailable` or `outcome_unknown` when the journal fails.
 */
export async function startVolume<Probe extends ProbeFacts>(deps: VolumeStartDeps<Probe>, mode: StartMode = 'plain'): Promise<VolumeStartResult> {
  const { policy, calls } = deps;
  const opened: Descriptor[] = [];
  try {
    if (policy.path === null) {
      (await deps.titles.claim(policy.name, null, 'plain')).opened();
      return { kind: 'lock_only' };
    }
    const root = await calls.openPath(policy.path, ROOT_FLAGS);
    opened.push(root);
    return policy.readOnly ? await startReadOnly(deps, root) : await startWritable(deps, mode, root, opened);
  } catch (thrown) {
    // What the start holds is of no use any more; the error that ended it is the one to tell.
    for (const descriptor of opened) await calls.close(descriptor).catch(() => undefined);
    return refusalOf(policy.name, thrown);
  }
}

async function startReadOnly<Probe extends ProbeFacts>(deps: VolumeStartDeps<Probe>, root: Descriptor): Promise<VolumeStartResult> {
  const { calls, policy } = deps;
  const title = await deps.titles.claim(policy.name, null, 'plain');
  const { dev } = await calls.fstat(root);
  const probe = await deps.probe(calls, root, null);
  const room = {
    name: policy.name,
    calls,
    root,
    inc: root,
    incarnation: '',
    litter: new Litter(),
    dev,
    folds: probe.folds,
    hardLinks: probe.hardLinks,
    sync: new DirectorySync(calls),
    refuseOthers: null,
  };
  const volume = deps.openVolume({ policy, room, fenceLevel: 'token', probe, life: noLife(policy.name), onFenced: deps.onFenced });
  const close = async (): Promise<void> => {
    await volume.close?.();
    await calls.close(root).catch(() => undefined); // nothing was written through it
  };
  title.opened();
  return {
    kind: 'open',
    volume,
    stamp: null,
    ceilingFound: 0n,
    verdict: 'ok',
    volumeUuid: null,
    findings: [],
    removeEmpty: () => Promise.resolve(false),
    close,
  };
}

async function startWritable<Probe extends ProbeFacts>(
  deps: VolumeStartDeps<Probe>,
  mode: StartMode,
  root: Descriptor,
  opened: Descriptor[],
): Promise<VolumeStartResult> {
  const { calls, policy } = deps;
  const { gateway } = deps.titles.owner();
  await assertInNoOther(deps.callsAbove, root, gateway);
  await deps.record.assertOurs();
  const { control, dev } = await openControl(deps, root);
  opened.push(control);
  const found = await readStamp(calls, control);
  const owner = await ownerOf(deps, mode, control, found);
  // The root is marked now. Whoever marked one above it meanwhile looks no further up; so it is for us to see that.
  await assertInNoOther(deps.callsAbove, root, gateway);
  const title = await deps.titles.claim(policy.name, owner.volume, mode === 'adopt' ? 'adopt' : 'plain');
  const probe = await deps.probe(calls, root, control);

  const directory = await publishedDirectory(deps, title, control, opened);
  calls.touchAt(directory.descriptor);
  const cleared = await clearOldDirectories(deps, { control, own: directory, title, all: mode !== 'plain' });
  if (owner.becomes !== null) await takeOwnership(calls, control, directory, { owner: owner.becomes, volume: owner.volume });

  const room = {
    name: policy.name,
    calls,
    root,
    inc: directory.descriptor,
    incarnation: directory.name,
    litter: directory.litter,
    dev,
    folds: probe.folds,
    hardLinks: probe.hardLinks,
    sync: new DirectorySync(calls),
    refuseOthers: refusingOthers(calls, root, gateway),
  };
  const anotherSince = found !== null && found.journal !== deps.journalUuid;
  const { life, findings } = await recoverVolume(deps, room, directory, { anotherSince });
  const { stamp, verdict } = await openStamp(deps, {
    control,
    directory,
    found,
    floor: title.floor,
    isOwn: owner.isOwn,
    volumeUuid: owner.volume,
    unknownFiles: cleared.unknownFiles,
  });
  const volume = deps.openVolume({
    policy,
    room,
    fenceLevel: probe.fenceHolds ? 'incarnation' : 'token',
    probe,
    life: volumeLife(life),
    onFenced: deps.onFenced,
  });
  const close = async (): Promise<void> => {
    await stamp.stop();
    await volume.close?.();
    for (const descriptor of opened) await calls.close(descriptor).catch(() => undefined); // directories: nothing was written through them
  };
  title.opened();
  return {
    kind: 'open',
    volume,
    stamp,
    verdict,
    removeEmpty: (name) => removeEmptyDirectory(calls, control, name),
    close,
    ceilingFound: found?.ceiling ?? 0n,
    volumeUuid: owner.volume,
    findings: [...cleared.findings, ...findings, ...stampFindings(policy.name, verdict, deps.markedAsBackup())],
  };
}

/**
 * The own directory, made and then published: a name that were published first could be made after a successor had found it missing. A
 * process that may not publish it (a successor has the journal) makes none, or, stopped between the two, leaves none behind.
 */
async function publishedDirectory(deps: StartContext, title: VolumeTitle, control: Descriptor, opened: Descriptor[]): Promise<IncarnationDirectory> {
  await deps.record.assertOurs();
  const directory = await IncarnationDirectory.make(deps.calls, control, deps.random);
  opened.push(directory.descriptor);
  try {
    await deps.record.published(directory.name);
    await title.published(directory.name);
  } catch (thrown) {
    // It is empty. Where that fails too, the next start reports a directory that nobody published.
    await deps.calls.rmdir(at(control, directory.name)).catch(() => undefined);
    throw thrown;
  }
  return directory;
}

/** `.fencegate`, made durable when it is missing. On another device nothing could be renamed out of it (trap F14). */
async function openControl({ calls }: StartContext, root: Descriptor): Promise<{ control: Descriptor; dev: bigint }> {
  const place = at(root, CONTROL_DIRECTORY);
  try {
    await calls.mkdir(place, 0o700);
  } catch (thrown) {
    if (errnoOf(thrown) !== 'EEXIST') throw thrown;
  }
  await calls.fsync(root);
  let control: Descriptor;
  try {
    control = await calls.open(place, OPEN_DIRECTORY);
  } catch (thrown) {
    const name = errnoOf(thrown);
    if (name === 'ENOTDIR' || name === 'ELOOP') throw new StartRefused('foreign_entry', `${CONTROL_DIRECTORY} on it is not a directory.`);
    throw thrown;
  }
  const [above, { dev }] = [await calls.fstat(root), await calls.fstat(control)];
  if (above.dev === dev) return { control, dev };
  await calls.close(control);
  throw new StartRefused('foreign_entry', `${CONTROL_DIRECTORY} on it lies on another device than the volume.`);
}

const FULL = 'It is full: a start needs room for a directory of its own. Make some beside the gateway; then it opens by itself.';
const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'Its directory is missing.',
  ENOTDIR: 'Its path is not a directory.',
  ENOSPC: FULL,
  EDQUOT: FULL,
  EROFS: 'It is mounted read-only. Mount it for writing, or set read_only: true for it; then restart, or wait until it opens by itself.',
};

function refusalOf(volume: string, thrown: unknown): VolumeStartResult {
  // Whatever is in doubt is found, or done, at the next start.
  if (thrown instanceof GatewayError && (thrown.code === 'journal_unavailable' || thrown.code === 'outcome_unknown')) throw thrown;
  const closed = (code: VolumeFinding['code'], reason: string): VolumeStartResult => ({
    kind: 'closed',
    reason,
    ownedByAnother: code === 'foreign_owner' || code === 'inside_another',
    findings: [{ code, severity: 'error', volume, resource: null, evidence: reason }],
  });
  if (thrown instanceof StartRefused) return closed(thrown.finding, thrown.message);
  if (thrown instanceof VolumeTaken) return thrown.lasting ? closed('foreign_owner', thrown.message) : standby(volume, thrown.message);
  if (thrown instanceof ClearStopped && thrown.kind === 'foreign') return closed('foreign_entry', `It stays closed: ${thrown.message}.`);
  if (thrown instanceof OwnerUnreadable || thrown instanceof StampUnreadable) return closed('record_damaged', `It stays closed: ${thrown.message}.`);
  const errno = errnoOf(thrown);
  // Whoever still uses the old directory ends some day: it is tried again.
  const isOurs = thrown instanceof GatewayError || thrown instanceof ClearStopped;
  if (errno === null && !isOurs) throw thrown;
  const reason = isOurs ? thrown.message : (REASONS[errno ?? ''] ?? `It answered with an error (${errno}).`);
  return {
    kind: 'unavailable',
    reason,
    ownedByAnother: false,
    findings: [{ code: 'volume_unavailable', severity: 'error', volume, resource: null, evidence: reason }],
  };
}

/** Tried again: it is ours as soon as its owner is gone. */
function standby(volume: string, reason: string): VolumeStartResult {
  return {
    kind: 'unavailable',
    reason,
    ownedByAnother: true,
    findings: [{ code: 'standby', severity: 'warning', volume, resource: null, evidence: reason }],
  };
}

import type { OperationKnown } from '../../domain/journal.ts';
import type { VolumeFinding } from '../../domain/recovery.ts';
import type { Resource } from '../../domain/resource.ts';
import { moveLinkName, moveTrashName, redoName } from '../incarnation-names.ts';
import { factsOf } from '../target-kind.ts';
import { RecordDamaged } from './facts-record.ts';
import { namesOfManifest } from './intent-names.ts';
import { type Manifest, readManifest } from './manifest-record.ts';
import { readRedoEntry } from './redo.ts';
import { resourceLike } from './resource-like.ts';
import { rollManifest } from './roll-manifest.ts';
import { settleStrayRedo } from './settle-in-place.ts';
import { rollMove } from './settle-move.ts';
import { atPlace, type SettleRoom, settled } from './settle-room.ts';
import { orAbsent } from './whole-file.ts';

/**
 * Redo entries and manifests in the own directory. Of an operation that the journal knows they are nobody's concern here: an unsettled one
 * was judged by its intents, a settled one needs nothing any more, and what it left is only swept. The journal knows nothing where the
 * writer was a stranger, where it was cut off before its intent, where the journal is lost, and where the operation is so old that its
 * records went. It may therefore be one that was acknowledged, and everything may have been written over since: a manifest goes forward
 * only if one of its targets is the very file that it staged, and only with what still waits; it goes back only if it says so itself. A manifest
 * that cannot be judged is kept and reported. A redo entry that proves nothing is reported and goes.
 */
export interface StrayVerdict {
  readonly keep: readonly string[];
  readonly findings: readonly VolumeFinding[];
}

type Knows = (operationId: string) => OperationKnown;

export async function settleStrays(deps: SettleRoom, names: readonly string[], knows: Knows): Promise<StrayVerdict> {
  const keep: string[] = [];
  const findings: VolumeFinding[] = [];
  for (const name of names) {
    try {
      const left = name.endsWith(redoName(''))
        ? await strayRedo(deps, name, knows)
        : name.startsWith('manifest-') && !name.includes('.')
          ? await strayManifest(deps, name, knows)
          : null;
      if (left === null) continue;
      keep.push(...left.keep);
      findings.push(left.finding);
    } catch (thrown) {
      if (!(thrown instanceof RecordDamaged)) throw thrown;
      keep.push(name);
      findings.push(finding(deps, 'record_damaged', null, `${name} in the gateway's own directory cannot be read: ${thrown.message}.`));
    }
  }
  return { keep, findings };
}

interface Left {
  readonly keep: readonly string[];
  readonly finding: VolumeFinding;
}

async function strayRedo(deps: SettleRoom, name: string, knows: Knows): Promise<Left | null> {
  const entry = await readRedoEntry(deps.room.calls, deps.directory.entry(name));
  if (entry === null || knows(entry.operationId) !== 'never') return null;
  const resource = resourceLike({ volume: deps.room.name }, entry.path);
  if (await settleStrayRedo(deps, entry, resource)) return null;
  return {
    keep: [],
    finding: finding(
      deps,
      'redo_unfinished',
      resource,
      'A write in place that the journal does not know may have stopped in the middle of this file, or newer writes may have followed it; the file does not tell. It was left as it is, and the record of that write was dropped.',
    ),
  };
}

async function strayManifest(deps: SettleRoom, name: string, knows: Knows): Promise<Left | null> {
  const manifest = await readManifest(deps.room.calls, deps.directory.entry(name));
  if (manifest === null || knows(manifest.operationId) !== 'never') return null;
  const [first] = manifest.entries;
  if (first === undefined) return null;
  const resource = resourceLike({ volume: deps.room.name }, first.path);
  const done =
    manifest.kind === 'move' ? await strayMove(deps, manifest, resource) : (await rollManifest(deps, manifest, resource, 'strangers')) !== 'stuck';
  if (done) return null;
  const staged = manifest.entries.flatMap((entry) => (entry.staged === null ? [] : [entry.staged.name]));
  return {
    keep: [...namesOfManifest(name, manifest.entries.length), ...staged],
    finding: finding(
      deps,
      'manifest_unfinished',
      resource,
      'An interrupted operation on several names, unknown to the journal, does not fit the files that are there now. Nothing was changed.',
    ),
  };
}

async function strayMove(deps: SettleRoom, manifest: Manifest, to: Resource): Promise<boolean> {
  const {
    from,
    entries: [entry],
  } = manifest;
  if (from === null || entry === undefined) return true;
  if (!(await isInTheMiddle(deps, manifest, from, to))) return true;
  const { settlement } = await rollMove(deps, { manifest, source: from.source, before: entry.before, fromPath: from.path }, to.path, to.volume);
  return settlement !== 'unknown';
}

/**
 * Its last step puts the old name into the trash, so with that a move is over, whatever the names hold since. Before that: the link is the
 * file's only name, which would be lost with it; or the new name is the file. Back, each step leaves the file under the link or the old name.
 */
async function isInTheMiddle(deps: SettleRoom, manifest: Manifest, from: NonNullable<Manifest['from']>, to: Resource): Promise<boolean> {
  const { ino } = from.source;
  const trash = await orAbsent(deps.room.calls.lstat(deps.directory.entry(moveTrashName(manifest.name))));
  if (trash !== null && factsOf(trash).ino === ino) return false;
  const link = await orAbsent(deps.room.calls.lstat(deps.directory.entry(moveLinkName(manifest.name))));
  if (link !== null && factsOf(link).ino === ino && link.nlink === 1n) return true;
  if (!(await isAt(deps, to, ino))) return false;
  return manifest.direction === 'forward' || (await isAt(deps, resourceLike(to, from.path), ino));
}

async function isAt(deps: SettleRoom, resource: Resource, ino: bigint): Promise<boolean> {
  const { after } = await atPlace(deps, resource, async (spot) => settled('unknown', await spot.look()));
  return after?.ino === ino;
}

function finding(deps: SettleRoom, code: VolumeFinding['code'], resource: Resource | null, evidence: string): VolumeFinding {
  return { code, severity: 'error', volume: deps.room.name, resource: resource?.name ?? null, evidence };
}

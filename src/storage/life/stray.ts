import type { VolumeFinding } from '../../domain/recovery.ts';
import type { Resource } from '../../domain/resource.ts';
import { moveLinkName, redoName } from '../incarnation-names.ts';
import { factsOf } from '../target-kind.ts';
import { RecordDamaged } from './facts-record.ts';
import { namesOfManifest } from './intent-names.ts';
import { type Manifest, readManifest } from './manifest-record.ts';
import { readRedoEntry } from './redo.ts';
import { resourceLike } from './resource-like.ts';
import { settleStrayRedo } from './settle-in-place.ts';
import { rollMove } from './settle-move.ts';
import type { SettleRoom } from './settle-room.ts';
import { lookAtEntries, rollManifest } from './settle-several.ts';
import { copyNameOf } from './volume-names.ts';
import { orAbsent } from './whole-file.ts';

/**
 * Redo entries and manifests in the own directory that no intent of our journal speaks of: their writer was a stranger, or its
 * journal is lost. A manifest goes forward only if one of its targets already is the staged inode; else nothing was applied
 * and it is dropped. What cannot be judged is kept and reported.
 */
export interface StrayVerdict {
  readonly keep: readonly string[];
  readonly findings: readonly VolumeFinding[];
}

export async function settleStrays(deps: SettleRoom, names: readonly string[], hasIntent: (operationId: string) => boolean): Promise<StrayVerdict> {
  const keep: string[] = [];
  const findings: VolumeFinding[] = [];
  for (const name of names) {
    try {
      const left = name.endsWith(redoName(''))
        ? await strayRedo(deps, name, hasIntent)
        : name.startsWith('manifest-') && !name.includes('.')
          ? await strayManifest(deps, name, hasIntent)
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

async function strayRedo(deps: SettleRoom, name: string, hasIntent: (operationId: string) => boolean): Promise<Left | null> {
  const entry = await readRedoEntry(deps.room.calls, deps.directory.entry(name));
  // An operation whose intent is known was judged by its intent, now or long ago.
  if (entry === null || hasIntent(entry.operationId)) return null;
  const resource = resourceLike({ volume: deps.room.name }, entry.path);
  if (await settleStrayRedo(deps, entry, resource)) return null;
  return {
    keep: [name, entry.staged.name, copyNameOf(entry.staged.name)],
    finding: finding(
      deps,
      'redo_unfinished',
      resource,
      'An interrupted write in place, unknown to the journal, does not fit the file that is there now. Nothing was changed.',
    ),
  };
}

async function strayManifest(deps: SettleRoom, name: string, hasIntent: (operationId: string) => boolean): Promise<Left | null> {
  const manifest = await readManifest(deps.room.calls, deps.directory.entry(name));
  if (manifest === null || hasIntent(manifest.operationId)) return null;
  const [first] = manifest.entries;
  if (first === undefined) return null;
  const resource = resourceLike({ volume: deps.room.name }, first.path);
  const done = manifest.kind === 'move' ? await strayMove(deps, manifest, resource) : await straySeveral(deps, manifest, resource);
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

async function straySeveral(deps: SettleRoom, manifest: Manifest, resource: Resource): Promise<boolean> {
  const standings = await lookAtEntries(deps, manifest, resource);
  if (manifest.direction === 'forward' && !standings.includes('staged')) return true;
  return (await rollManifest(deps, manifest, resource)) !== 'stuck';
}

async function strayMove(deps: SettleRoom, manifest: Manifest, to: Resource): Promise<boolean> {
  const {
    from,
    entries: [entry],
  } = manifest;
  if (from === null || entry === undefined) return true;
  const begun = await moveBegan(deps, manifest, from.source.ino, to);
  if (!begun) return true;
  const { settlement } = await rollMove(deps, { manifest, source: from.source, before: entry.before, fromPath: from.path }, to.path, to.volume);
  return settlement !== 'unknown';
}

/** The new name is the moving inode, or the link is that inode's only name: it would be lost with the link. */
async function moveBegan(deps: SettleRoom, manifest: Manifest, ino: bigint, to: Resource): Promise<boolean> {
  const link = await orAbsent(deps.room.calls.lstat(deps.directory.entry(moveLinkName(manifest.name))));
  if (link !== null && factsOf(link).ino === ino && link.nlink === 1n) return true;
  const place = await deps.locate(to);
  try {
    return (await deps.look(place))?.ino === ino;
  } finally {
    place.close();
  }
}

function finding(deps: SettleRoom, code: VolumeFinding['code'], resource: Resource | null, evidence: string): VolumeFinding {
  return { code, severity: 'error', volume: deps.room.name, resource: resource?.name ?? null, evidence };
}

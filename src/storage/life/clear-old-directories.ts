import { LIMITS } from '../../domain/limits.ts';
import type { VolumeFinding } from '../../domain/recovery.ts';
import type { VolumeTitle } from '../../domain/volume-title.ts';
import { at, type Descriptor } from '../descriptor.ts';
import { errnoOf } from '../errno.ts';
import type { FileCalls } from '../file-calls.ts';
import { removeProbe } from '../probe.ts';
import { clearIncarnation } from './clear-incarnation.ts';
import type { IncarnationDirectory } from './incarnation-directory.ts';
import type { StartContext } from './start-deps.ts';
import { CONTROL_DIRECTORY, isIncarnationName, isOwnerDraft, isProbeName, OWNER_FILE, STAMP_FILE } from './volume-names.ts';
import { OPEN_DIRECTORY, orAbsent } from './whole-file.ts';

/**
 * Empties every old directory of ours, and of dead incarnations that the coordinator knows, into the own one and removes it; `all`:
 * every incarnation directory there is (rebase, adoption). A directory that nobody published is reported and left: it may be somebody
 * else's, and where files are in it, it is (`opened-stamp.ts`). What a start that was cut off left beside them (a draft of the owner file, the directory of a self-test) goes too.
 */
export async function clearOldDirectories(
  deps: StartContext,
  { control, own, title, all }: { control: Descriptor; own: IncarnationDirectory; title: VolumeTitle; all: boolean },
): Promise<{ readonly findings: VolumeFinding[]; readonly unknownFiles: boolean }> {
  const { calls, record, endOldProcess, clock } = deps;
  const present = (await calls.names(control, LIMITS.controlEntriesMax)).map((name) => name.toString('utf8')).filter((name) => name !== own.name);
  const published = record.incarnations().filter((name) => name !== own.name);
  const left = title.left.filter((name) => name !== own.name && !published.includes(name));
  const unpublished = present.filter((name) => isIncarnationName(name) && !published.includes(name) && !left.includes(name));
  const created = createOnlyNames(deps);
  const pause = (ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve));
  for (const old of [...published, ...left, ...(all ? unpublished : [])]) {
    // Of a stranger's files nobody knows which one was about to be linked.
    const copies = all || left.includes(old) ? (name: string) => created.has(name) || isStrangersStaged(name) : (name: string) => created.has(name);
    await clearIncarnation({ calls, control, own, copies, endOldProcess, pause }, old);
    if (published.includes(old)) await record.gone(old);
    await title.gone(old);
  }
  for (const draft of present.filter(isOwnerDraft)) await orAbsent(calls.unlink(at(control, draft)));
  for (const probe of present.filter(isProbeName)) await removeProbe(calls, control, probe);
  const unknown: UnknownDirectory[] = [];
  for (const name of all ? [] : unpublished) unknown.push({ name, filled: await isFilled(calls, control, name) });
  return { findings: findingsOf(deps.policy.name, present, unknown), unknownFiles: unknown.some(({ filled }) => filled) };
}

interface UnknownDirectory {
  readonly name: string;
  readonly filled: boolean;
}

/** What nobody may look into counts as filled; what is no directory, or gone, is nobody's to write from. */
async function isFilled(calls: FileCalls, control: Descriptor, name: string): Promise<boolean> {
  try {
    const directory = await orAbsent(calls.open(at(control, name), OPEN_DIRECTORY));
    if (directory === null) return false;
    try {
      return await hasEntry(calls, directory);
    } finally {
      await calls.close(directory);
    }
  } catch (thrown) {
    const errno = errnoOf(thrown);
    if (errno === 'ENOTDIR' || errno === 'ELOOP') return false;
    if (errno === 'EACCES' || errno === 'EPERM') return true;
    throw thrown;
  }
}

async function hasEntry(calls: FileCalls, directory: Descriptor): Promise<boolean> {
  const open = await calls.openDirectory(directory);
  try {
    return (await calls.readDirectory(open)) !== null;
  } finally {
    await open.close().catch(() => undefined); // reading is over; nothing was written through it
  }
}

/** Staged to be created: published by a link, which on NFS goes by file handle and would not notice that its directory is gone. */
function createOnlyNames({ record }: StartContext): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { plan, before, staged } of record.unsettled()) {
    if (staged !== null && (plan.kind === 'create' || (plan.kind === 'several' && before === null))) names.add(staged.name);
  }
  return names;
}

/** A staged file of any incarnation; records, trash and kept files are never the source of a link that publishes. */
function isStrangersStaged(name: string): boolean {
  return /^[0-9a-f]{32}-[0-9]+$/.test(name);
}

function findingsOf(volume: string, present: readonly string[], unknown: readonly UnknownDirectory[]): VolumeFinding[] {
  const findings: VolumeFinding[] = unknown.map(({ name, filled }) => ({
    code: 'unknown_directory',
    severity: filled ? 'error' : 'warning',
    volume,
    resource: null,
    entry: name,
    evidence: `${CONTROL_DIRECTORY}/${name} is an incarnation directory that this journal never published. ${filled ? 'There are files in it; a rebase clears it.' : 'It is empty, and was left alone.'}`,
  }));
  const known = (name: string): boolean =>
    name === OWNER_FILE || name === STAMP_FILE || isIncarnationName(name) || isOwnerDraft(name) || isProbeName(name);
  for (const name of present) {
    if (!known(name))
      findings.push({
        code: 'foreign_entry',
        severity: 'warning',
        volume,
        resource: null,
        evidence: `${CONTROL_DIRECTORY}/${name} was not made by the gateway. It was left alone.`,
      });
  }
  return findings;
}

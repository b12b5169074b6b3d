import type { StampVerdict, VolumeFinding } from '../../domain/recovery.ts';
import type { Descriptor } from '../descriptor.ts';
import type { IncarnationDirectory } from './incarnation-directory.ts';
import { judgeStamp, type Stamp, writeStamp } from './stamp.ts';
import type { StartContext } from './start-deps.ts';
import { TokenStamp } from './token-stamp.ts';

export interface StampParts {
  readonly control: Descriptor;
  readonly directory: IncarnationDirectory;
  readonly found: Stamp | null;
  /** Of the title: above every token that anybody else was ever given here. */
  readonly floor: bigint | null;
  /** The owner file names the coordinator that is used now. */
  readonly isOwn: boolean;
  /** The volume's own: no configuration changes it. */
  readonly volumeUuid: string;
  /** There are files in an incarnation directory that this journal never published. */
  readonly unknownFiles: boolean;
}

/**
 * The stamp under our journal's name, and whether it may be written (`write-protocol.md`, "Restored or lost journal"). A successor
 * with another journal that owns the volume at the same coordinator goes on above its floor; everybody else waits for a rebase.
 *
 * Files in an unknown directory ask for one too: a process publishes its directory before it puts anything there, so one that wrote on
 * the volume is missing in the journal, and may yet move a file into place from there. An empty one is what a process leaves that was cut off
 * before it published; of a later state of our journal the ceiling tells without any file.
 */
export async function openStamp(
  deps: StartContext,
  { control, directory, found, floor, isOwn, volumeUuid, unknownFiles }: StampParts,
): Promise<{ readonly stamp: TokenStamp; readonly verdict: StampVerdict }> {
  const stamp = new TokenStamp({
    volume: deps.policy.name,
    journalUuid: deps.journalUuid,
    found,
    clock: deps.clock,
    record: (ceiling) => deps.record.reserveCeiling(volumeUuid, ceiling),
    write: (next) => writeStamp(deps.calls, control, directory, next),
    onFailure: deps.onStampFailure,
  });
  const facts = { uuid: deps.journalUuid, knows: deps.journalKnows(), reserved: deps.record.reservedCeiling(volumeUuid) };
  const judged = isOwn ? judgeStamp(found, facts) : 'other_coordinator';
  const verdict = judged === 'ok' && unknownFiles ? 'unknown_files' : judged;
  const backup = deps.markedAsBackup();
  // A floor at or below a token that was issued is of an ensemble that was put back.
  if (verdict === 'other_journal' && found !== null && floor !== null && floor > found.last && !unknownFiles && !backup) {
    // The floor first: until the stamp bears our name the next start does all of this again.
    await deps.record.takenOver(found.journal, floor);
    await stamp.rebase(floor);
    return { stamp, verdict: 'ok' };
  }
  if (verdict !== 'ok' || backup) stamp.block('its tokens are ahead of the journal; a rebase is needed');
  // The next token must not wait for a disk.
  else await stamp.reserve(stamp.ceiling + 1n);
  return { stamp, verdict };
}

const WAITS_FOR_REBASE: Readonly<Record<Exclude<StampVerdict, 'ok'>, Pick<VolumeFinding, 'code' | 'evidence'>>> = {
  other_journal: {
    code: 'other_journal',
    evidence: 'The stamp on the volume names another journal than this one. Writes are refused until a rebase.',
  },
  ahead_of_journal: {
    code: 'journal_behind_stamp',
    evidence:
      'The stamp on the volume knows a token that the journal does not: the journal is older than the volume. Writes are refused until a rebase.',
  },
  unreserved_ceiling: {
    code: 'journal_behind_stamp',
    evidence:
      'The stamp on the volume has a token ceiling that the journal never reserved: a later state of the journal had the volume. Writes are refused until a rebase.',
  },
  unknown_files: {
    code: 'journal_behind_stamp',
    evidence:
      'There are files in an incarnation directory that the journal never published: somebody wrote to the volume of whom the journal does not know. Writes are refused until a rebase.',
  },
  other_coordinator: {
    code: 'other_coordinator',
    evidence: 'The tokens of the volume so far came from another coordinator than this one. Writes are refused until a rebase.',
  },
};

export function stampFindings(volume: string, verdict: StampVerdict, backup: boolean): VolumeFinding[] {
  if (verdict !== 'ok') return [{ severity: 'error', volume, resource: null, ...WAITS_FOR_REBASE[verdict] }];
  if (!backup) return [];
  const evidence = 'The journal is a backup that was put back. Writes are refused until a rebase.';
  return [{ code: 'journal_behind_stamp', severity: 'error', volume, resource: null, evidence }];
}

export function asksForRebase({ code }: VolumeFinding): boolean {
  return code === 'other_journal' || code === 'journal_behind_stamp' || code === 'other_coordinator';
}

import type { AuditAction, AuditRecord } from '../domain/audit-record.ts';
import { asGatewayError, type ErrorCode } from '../domain/errors.ts';
import { etagOf, type TargetFacts } from '../domain/file-facts.ts';
import { LIMITS } from '../domain/limits.ts';
import { resourceOf } from '../domain/resource.ts';
import { type Diagnosis, diagnosis } from './diagnosis.ts';
import type { DoctorDeps, ExaminedVolume } from './doctor-deps.ts';
import { isServed } from './volume-findings.ts';

/** The verbs whose record says which version of a file they left. */
const FILE_ACTIONS: readonly AuditAction[] = ['put', 'patch', 'append', 'upload', 'delete', 'move', 'copy'];

/** What stands in the way at a name where the gateway left a file. */
const REPLACED: ReadonlySet<ErrorCode> = new Set(['symbolic_link', 'not_a_directory', 'special_file', 'cross_volume']);

/**
 * Files that are not what the newest commit through the gateway left: somebody writes to the volume around it (trap T32). Looks at the
 * newest commits only, and believes what the audit log says, so it also sees what happened while the gateway was down. Of what another
 * gateway wrote, which had the volume meanwhile or has it now, the audit log knows nothing.
 */
export async function foreignChanges(journal: DoctorDeps['journal'], volumes: readonly ExaminedVolume[]): Promise<Diagnosis[]> {
  const byName = new Map(volumes.map((volume) => [volume.name, volume]));
  const found: Diagnosis[] = [];
  const silent = new Set<string>();
  const takenOver = await newestTakeOvers(journal);
  for (const record of await newestCommits(journal)) {
    const volume = byName.get(record.volume ?? '');
    if (volume === undefined || silent.has(volume.name) || record.seq < (takenOver.get(volume.name) ?? 0)) continue;
    const now = await standing(volume, record.path ?? '');
    // Whose it is counts when it has answered: this process may have been stopped meanwhile.
    if (now === 'no_answer' || !isServed(volume)) silent.add(volume.name);
    else if (!now.asLeft(record.etagAfter) && (await isNewest(journal, record))) found.push(changed(record, now.etag, now.what));
    if (found.length >= LIMITS.doctorFindingsMax) break;
  }
  return found;
}

/** The newest commit of each file among the newest of each verb. */
async function newestCommits(journal: DoctorDeps['journal']): Promise<readonly AuditRecord[]> {
  const page = { order: 'desc', limit: LIMITS.doctorCommitsMax, cursor: null } as const;
  const pages = await Promise.all(FILE_ACTIONS.map((action) => journal.audit({ action, outcome: 'committed' }, page)));
  const newest = new Map<string, AuditRecord>();
  for (const record of pages.flatMap(({ records }) => records).sort((a, b) => b.seq - a.seq)) {
    if (record.volume === null || record.path === null) continue;
    const name = `${record.volume}/${record.path}`;
    if (!newest.has(name)) newest.set(name, record);
    if (newest.size >= LIMITS.doctorFilesMax) break;
  }
  return [...newest.values()];
}

/** By volume, where in the audit log it was last taken over from another journal. */
async function newestTakeOvers(journal: DoctorDeps['journal']): Promise<ReadonlyMap<string, number>> {
  const { records } = await journal.audit({ action: 'take_over' }, { order: 'desc', limit: LIMITS.doctorCommitsMax, cursor: null });
  return new Map(records.toReversed().flatMap(({ volume, seq }) => (volume === null ? [] : [[volume, seq]])));
}

interface Standing {
  readonly etag: string | null;
  readonly what: string;
  asLeft(etag: string | null): boolean;
}

async function standing(volume: ExaminedVolume, path: string): Promise<Standing | 'no_answer'> {
  try {
    const place = await volume.locate(resourceOf(volume.name, path.split('/'), volume.folds));
    try {
      return standingOf(await volume.look(place));
    } finally {
      place.close();
    }
  } catch (thrown) {
    const { code } = asGatewayError(thrown);
    if (!REPLACED.has(code)) return 'no_answer';
    return { etag: null, what: code, asLeft: () => false };
  }
}

function standingOf(facts: TargetFacts | null): Standing {
  if (facts === null) return { etag: null, what: 'absent', asLeft: (etag) => etag === null };
  if (facts.kind !== 'file') return { etag: null, what: facts.kind, asLeft: (etag) => etag === null };
  const now = etagOf(facts);
  return { etag: now, what: 'file', asLeft: (etag) => etag === now };
}

/** A write that came meanwhile, or whose end is not known, says nothing about others. */
async function isNewest(journal: DoctorDeps['journal'], { volume, path, seq }: AuditRecord): Promise<boolean> {
  const filter = { volume: volume ?? '', path: path ?? '' };
  const page = { order: 'desc', limit: LIMITS.doctorCommitsMax, cursor: null } as const;
  const { records } = await journal.audit(filter, page);
  const last = records.find(({ action, outcome }) => FILE_ACTIONS.includes(action) && outcome !== 'rejected' && outcome !== 'aborted');
  return last?.seq === seq;
}

function changed({ volume, path, etagAfter, at, operationId, seq }: AuditRecord, etagNow: string | null, what: string): Diagnosis {
  const name = `${volume ?? ''}/${path ?? ''}`;
  return diagnosis({
    code: 'file_changed_behind_gateway',
    severity: 'warning',
    resource: name,
    evidence: {
      etag_committed: etagAfter,
      etag_now: etagNow,
      now: what,
      committed_at: at,
      operation_id: operationId,
      seq,
      how: 'Somebody writes to the volume around the gateway, where no token is checked. The file was not touched; its next write through the gateway ends this finding.',
    },
  });
}

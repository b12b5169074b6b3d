import type { Clock } from '../domain/clock.ts';
import { asGatewayError } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import type { VolumeFinding } from '../domain/recovery.ts';
import { resourceOf } from '../domain/resource.ts';
import { within } from '../domain/within.ts';
import { type Diagnosis, diagnosis, type Remedy } from './diagnosis.ts';
import type { DoctorDeps, ExaminedVolume, LaneLook } from './doctor-deps.ts';

/** What to do by hand where a fix by itself would not be safe. */
const HOW: Readonly<Partial<Record<VolumeFinding['code'], string>>> = {
  journal_behind_stamp: 'POST /v1/admin/fences/rebase {"reason":"..."} voids every token so far and goes on above them.',
  other_journal: 'POST /v1/admin/fences/rebase {"reason":"..."} voids every token so far and goes on above them.',
  other_coordinator: 'POST /v1/admin/fences/rebase {"reason":"..."} voids every token so far and goes on above them.',
  standby: 'Nothing to do: it is taken over when its owner is gone.',
  foreign_owner: 'Make sure that its owner is gone, then POST /v1/admin/volumes/{name}/adopt {"reason":"..."}.',
  inside_another:
    'Choose a directory outside of the other volume; or, if its owner is gone for good, remove its .fencegate and start this gateway again.',
  foreign_entry: 'Look at it and remove it by hand.',
  intent_unknown: 'Look at the file, then write it again through the gateway; GET /v1/operations/{operation_id} tells of the write.',
  record_damaged: 'Look at it by hand. POST /v1/admin/volumes/{name}/adopt {"reason":"..."} makes owner and stamp anew.',
};

/** Nobody has it; that the answer is `absent` costs the volume one look-up. */
const PROBED_NAME = 'fencegate-doctor-probe';

/** What the volumes found when they started. */
export function startFindings(volumes: readonly ExaminedVolume[]): Diagnosis[] {
  return volumes.flatMap((volume) =>
    volume.findings.slice(0, LIMITS.doctorFindingsMax).map(({ code, severity, resource, evidence, entry }) =>
      diagnosis({
        code,
        severity,
        resource,
        subject: `${volume.name} ${entry ?? evidence}`,
        evidence: { volume: volume.name, what: evidence, how: HOW[code]?.replace('{name}', volume.name) ?? null },
        remedy: entry === undefined ? null : removal(volume, entry),
      }),
    ),
  );
}

/** Only when it is empty: what is in it may be the only copy of something. */
function removal(volume: ExaminedVolume, entry: string): Remedy {
  return {
    fix: 'Remove the directory if nothing is in it.',
    steps: [
      `remove the directory ${entry} of volume ${volume.name} if nothing is in it; else leave it alone`,
      'whoever made it and still runs can change no name on the volume any more',
    ],
    subject: { volume: volume.name, path: null },
    leaseRef: null,
    carryOut: async () => {
      const gone = await volume.removeUnknownDirectory(entry);
      return [
        gone
          ? `removed the directory ${entry} of volume ${volume.name}`
          : `left the directory ${entry} of volume ${volume.name} alone: something is in it`,
      ];
    },
  };
}

export interface VolumeProbeDeps {
  readonly clock: Clock;
  readonly volumes: readonly ExaminedVolume[];
  readonly lanes: ReadonlyMap<string, LaneLook>;
}

/** Asks each volume one small thing and takes the time. One that hangs holds up nothing but this answer, and that within bounds. */
export async function slowVolumes({
  clock,
  volumes,
  lanes,
}: VolumeProbeDeps): Promise<{ readonly found: readonly Diagnosis[]; readonly answering: readonly ExaminedVolume[] }> {
  const looks = await Promise.all(volumes.filter((volume) => isServed(volume)).map(async (volume) => ({ volume, ...(await timed(clock, volume)) })));
  const found = looks.flatMap(({ volume, tookMs, problem }) => {
    if (problem === null && tookMs < LIMITS.volumeSlowMs) return [];
    const lane = lanes.get(volume.name);
    const evidence = {
      volume: volume.name,
      took_ms: Math.round(tookMs),
      problem,
      in_flight: lane?.inFlight ?? null,
      queued: lane?.queued ?? null,
      breaker: lane?.breaker ?? null,
      how:
        problem === null ? null : 'Its calls are refused meanwhile, and it is tried again every few seconds. Look at the mount and the file server.',
    };
    const hung = problem !== null;
    return [
      diagnosis({
        code: hung ? 'volume_hung' : 'volume_slow',
        severity: hung ? 'error' : 'warning',
        resource: null,
        subject: volume.name,
        evidence,
      }),
    ];
  });
  return { found, answering: looks.filter(({ problem }) => problem === null).map(({ volume }) => volume) };
}

/** What is closed or missing has findings of its own; of one that may be somebody else's nothing is known. */
export function isServed(volume: ExaminedVolume): boolean {
  const { state } = volume.state();
  return volume.policy.path !== null && (state === 'open' || state === 'read_only');
}

async function timed(clock: Clock, volume: ExaminedVolume): Promise<{ readonly tookMs: number; readonly problem: string | null }> {
  const startedMs = clock.monotonicMs();
  try {
    const answered = await within(clock, LIMITS.doctorCheckMsMax, lookAt(volume, PROBED_NAME));
    return { tookMs: clock.monotonicMs() - startedMs, problem: answered === 'late' ? 'it did not answer in time' : null };
  } catch (thrown) {
    return { tookMs: clock.monotonicMs() - startedMs, problem: asGatewayError(thrown).code };
  }
}

async function lookAt(volume: ExaminedVolume, path: string): Promise<void> {
  const place = await volume.locate(resourceOf(volume.name, [path], volume.folds));
  try {
    await volume.look(place);
  } finally {
    place.close();
  }
}

/** Told before writes are refused with 507; bytes and inodes run out apart (trap F29). */
export function nearlyFull(volumes: readonly Pick<ExaminedVolume, 'name' | 'space'>[]): Diagnosis[] {
  return volumes.flatMap((volume) => {
    const space = volume.space();
    if (space === null) return [];
    const few = (free: number | null, total: number | null): boolean => free !== null && total !== null && free < total * LIMITS.volumeFreeShareMin;
    if (!few(space.freeBytes, space.totalBytes) && !few(space.freeInodes, space.totalInodes)) return [];
    const evidence = {
      volume: volume.name,
      free_bytes: space.freeBytes,
      total_bytes: space.totalBytes,
      free_inodes: space.freeInodes,
      total_inodes: space.totalInodes,
      how: 'Make room on the file system. Deletes go through the gateway as long as its data directory has room.',
    };
    return [diagnosis({ code: 'volume_nearly_full', severity: 'warning', resource: null, subject: volume.name, evidence })];
  });
}

const UNTIL_NEXT_START =
  'The journal failed in the commit of this operation and does not say whether it has it. Mend its disk and start the gateway again: the start finishes the operation or drops it.';

/** Resources that are closed because their volume, or the journal, does not tell what became of a write. */
export function unknownOutcomes({ open, settleNow }: DoctorDeps['unsettled']): Diagnosis[] {
  return open().map(({ operationId, resource, volume, untilNextStart }) => {
    const finding = { code: 'outcome_unknown', severity: 'error', resource, subject: operationId } as const;
    const evidence = { operation_id: operationId, volume };
    if (untilNextStart) return diagnosis({ ...finding, evidence: { ...evidence, how: UNTIL_NEXT_START } });
    return diagnosis({
      ...finding,
      evidence: { ...evidence, how: 'No other write gets in before it is settled; it is looked at again every few seconds.' },
      remedy: {
        fix: 'Look at the volume now.',
        steps: [
          `compare the file with what operation ${operationId} staged and with what was there before`,
          'record whether it happened, and open the resource again',
        ],
        subject: { volume, path: resource.slice(volume.length + 1) },
        leaseRef: null,
        carryOut: async () => {
          const came = await settleNow(operationId);
          return [came === 'unknown' ? `operation ${operationId} still cannot be told` : `operation ${operationId} is settled`];
        },
      },
    });
  });
}

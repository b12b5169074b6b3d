import type { Administration, BreakReport, BreakRequest } from '../domain/administration.ts';
import { type FencingToken, fencingToken } from '../domain/fencing-token.ts';
import type { Journal, JournalStart } from '../domain/journal.ts';
import type { MountFacts } from '../domain/mount-facts.ts';
import type { Caller } from '../domain/principal.ts';
import type { Volumes } from '../domain/volume.ts';
import { readinessOf } from './health.ts';
import { adoptVolume, type RebaseDeps, rebaseFences } from './rebase.ts';
import { floorName } from './recover.ts';

export interface AdministrationDeps {
  readonly doctor: { report: Administration['doctor']; fix: Administration['fix'] };
  readonly rebase: RebaseDeps;
  readonly volumes: Volumes & { mount(name: string): MountFacts | null };
  readonly journal: Pick<Journal, 'mark'>;
  readonly start: Pick<JournalStart, 'meta'>;
  breakLock(caller: Caller, request: BreakRequest): Promise<BreakReport>;
}

/** What an administrator may do, each done by the room that owns it. */
export function createAdministration(deps: AdministrationDeps): Administration {
  return {
    breakLock: (caller, request) => deps.breakLock(caller, request),
    doctor: () => deps.doctor.report(),
    fix: (caller, request) => deps.doctor.fix(caller, request),
    fence: async (resource) => {
      const mark = await deps.journal.mark(resource.key);
      return {
        resource,
        highWaterMark: mark?.token ?? null,
        leaseRef: mark?.leaseRef ?? null,
        principal: mark?.principal ?? null,
        everNamed: mark?.everNamed ?? false,
        floor: floorOf(deps.start, resource.volume),
      };
    },
    rebase: (caller, reason) => rebaseFences(deps.rebase, caller, reason),
    adopt: async (caller, name, reason) => {
      const { state, reason: doubt } = deps.volumes.get(name).state();
      // It is this gateway's own: an adoption would end every lease, and void every token, for nothing, as when an order is repeated.
      if (state !== 'open' || doubt !== null) await adoptVolume(deps.rebase, name, caller, reason);
      return readinessOf(deps.volumes.get(name));
    },
    volumes: () =>
      deps.volumes.all().map((volume) => ({
        ...readinessOf(volume),
        path: volume.policy.path,
        incarnation: volume.incarnation === '' ? null : volume.incarnation,
        readOnly: volume.policy.readOnly,
        mount: deps.volumes.mount(volume.name),
      })),
  };
}

function floorOf(start: Pick<JournalStart, 'meta'>, volume: string): FencingToken | null {
  const stored = start.meta(floorName(volume));
  return stored === null ? null : fencingToken(BigInt(stored));
}

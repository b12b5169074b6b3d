import type { CoordinatorReadiness, Health, Readiness, VolumeReadiness } from '../domain/health.ts';
import type { Journal } from '../domain/journal.ts';
import type { StampVerdict } from '../domain/recovery.ts';
import type { Volumes } from '../domain/volume.ts';

export interface HealthDeps {
  readonly volumes: Volumes;
  readonly journal: Pick<Journal, 'healthy' | 'reason' | 'head'>;
  readonly coordinator: () => CoordinatorReadiness;
  readonly isDraining: () => boolean;
  /** Why the journal is not trusted; `null` when it is. */
  readonly distrust: () => string | null;
}

/** `/readyz`, from memory only. Not ready: draining, no journal, no coordinator that grants, or no volume that takes writes or locks. */
export function createHealth(deps: HealthDeps): Health {
  const readiness = (): Readiness => {
    const volumes = deps.volumes.all().map((volume) => readinessOf(volume));
    const head = deps.journal.head();
    const coordinator = deps.coordinator();
    const grants = (coordinator.state === 'connected' || coordinator.state === 'reconnected') && coordinator.reason === null;
    const usable = grants && volumes.some(({ state }) => state === 'open' || state === 'lock_only');
    return {
      ready: usable && deps.journal.healthy && !deps.isDraining(),
      journal: { healthy: deps.journal.healthy, headSeq: head.seq, headHash: head.hash, reason: deps.journal.reason ?? deps.distrust() },
      coordinator,
      volumes,
    };
  };
  return { readiness };
}

export function readinessOf(volume: ReturnType<Volumes['get']>): VolumeReadiness {
  return { name: volume.name, fenceLevel: volume.fenceLevel, ...volume.state(), space: volume.space() };
}

/** Why the journal is not to be trusted; `null` when it is. A backup that was put back, or a volume whose stamp is ahead of it. */
export function distrustOf(
  start: { readonly markedAsBackup: boolean },
  volumes: readonly (ReturnType<Volumes['get']> & { readonly verdict: StampVerdict | null })[],
): string | null {
  if (start.markedAsBackup) return 'it is a backup that was put back; a rebase is needed';
  return volumes.find(({ verdict }) => verdict !== null && verdict !== 'ok')?.state().reason ?? null;
}

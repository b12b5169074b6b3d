/**
 * `fence rebase` and `volume adopt` (`write-protocol.md`, "Restored or lost journal", "Who owns a volume"): the way back after a
 * journal was lost or put back, and the way in to a volume of another gateway. Tokens never fall for anybody (I6), no mark is
 * lowered (I2), and both are in the audit log before the answer (I4).
 */
import type { RebaseReport } from '../domain/administration.ts';
import { type AuditAction, auditDetail, recordWith } from '../domain/audit-record.ts';
import { type Clock, rfc3339 } from '../domain/clock.ts';
import { refuse } from '../domain/errors.ts';
import { type FencingToken, fencingToken } from '../domain/fencing-token.ts';
import type { Journal, JournalOp, JournalStart } from '../domain/journal.ts';
import type { Caller } from '../domain/principal.ts';
import { floorName, journalKnows, TOKEN_BASE, tokensAbove } from './recover.ts';

/** A volume as a rebase sees it; `ceilingFound` is `null` while it is not open. */
export interface RebasableVolume {
  readonly name: string;
  readonly ceilingFound: bigint | null;
  /** It belongs to another gateway: a rebase leaves it alone. */
  readonly ownedByAnother: boolean;
  readonly policy: { readonly path: string | null; readonly readOnly: boolean };
  /** Starts it again after clearing every incarnation directory. Rejects with `volume_unavailable`. */
  restart(mode: 'rebase' | 'adopt'): Promise<void>;
  /** Its stamp gets our journal's name and a ceiling above `base`; then it takes writes again. */
  rebase(base: bigint): Promise<void>;
}

export interface RebaseDeps {
  readonly start: Pick<JournalStart, 'highestMark' | 'meta'>;
  readonly journal: Pick<Journal, 'commit'>;
  readonly clock: Clock;
  readonly volumes: readonly RebasableVolume[];
  /** Ends every lease, durably, and goes on above `base`. */
  readonly locks: { rebase(base: bigint): Promise<void> };
}

/**
 * Every volume that is not another gateway's is cleared of older incarnations, every lease ended, every token so far void there. Rejects with
 * `volume_unavailable` when a volume does not open; nothing was rebased then, and it may be asked again.
 */
export async function rebaseFences(deps: RebaseDeps, caller: Caller | null, reason: string): Promise<RebaseReport> {
  const ours = deps.volumes.filter(({ ownedByAnother }) => !ownedByAnother);
  const concerned = ours.filter(hasStamp);
  for (const volume of concerned) await volume.restart('rebase');
  const base = nextBase(deps);
  const names = ours.map(({ name }) => name);
  await deps.locks.rebase(base);
  await deps.journal.commit([
    ...floorOps(names, base),
    { op: 'meta_put', name: 'backup', value: null },
    auditOp(deps.clock, 'fence_rebase', null, base, caller, reason),
  ]);
  // Last: until a stamp carries our name its volume takes no writes, so a crash before this leaves them refused.
  for (const volume of concerned) await volume.rebase(base);
  return { base, volumes: names };
}

/** Fences what is on the volume, takes it over from whoever owns it, and rebases. Rejects with `volume_not_found`, `volume_unavailable`. */
export async function adoptVolume(deps: RebaseDeps, name: string, caller: Caller | null, reason: string): Promise<FencingToken> {
  const volume = deps.volumes.find((one) => one.name === name);
  if (volume === undefined) throw refuse('volume_not_found', `There is no volume ${name}.`);
  if (!hasStamp(volume)) throw refuse('invalid_request', `The volume ${name} has no owner: it has no files, or is read-only.`);
  await volume.restart('adopt');
  const base = nextBase(deps);
  await deps.locks.rebase(base);
  await deps.journal.commit([...floorOps([name], base), auditOp(deps.clock, 'volume_adopt', name, base, caller, reason)]);
  await volume.rebase(base);
  return base;
}

/** The highest of marks, floors and stamp ceilings found, + 1. */
function nextBase({ start, volumes }: RebaseDeps): FencingToken {
  const known = journalKnows(
    start,
    volumes.map(({ name }) => name),
  );
  return fencingToken(
    tokensAbove(
      known,
      volumes.map(({ ceilingFound }) => ceilingFound),
    ) + 1n,
  );
}

function hasStamp({ policy }: RebasableVolume): boolean {
  return policy.path !== null && !policy.readOnly;
}

function floorOps(volumes: readonly string[], base: bigint): JournalOp[] {
  const value = base.toString();
  return [...volumes.map((volume): JournalOp => ({ op: 'meta_put', name: floorName(volume), value })), { op: 'meta_put', name: TOKEN_BASE, value }];
}

function auditOp(clock: Clock, action: AuditAction, volume: string | null, base: FencingToken, caller: Caller | null, reason: string): JournalOp {
  const record = recordWith({
    at: rfc3339(clock.wallMs()),
    action,
    volume,
    outcome: 'committed',
    principal: caller?.principal.name ?? null,
    clientId: caller?.clientId ?? null,
    remoteAddress: caller?.remoteAddress ?? null,
    requestId: caller?.requestId ?? null,
    highWaterMark: base,
    detail: auditDetail(reason),
  });
  return { op: 'audit', record };
}

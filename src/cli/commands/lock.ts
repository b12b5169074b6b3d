import type { BreakReport, Lock, LockParty } from '../../client/contract/answers.ts';
import { isFencegateError } from '../../client/errors.ts';
import type { CommandContext } from '../command-context.ts';
import { type ConnectionFlags, withClient, withOrder } from '../connection.ts';
import { shownDuration } from '../durations.ts';
import { EXIT } from '../exit-codes.ts';
import { printable } from '../printable.ts';
import { outJson } from '../screen.ts';
import { outFacts, outTable } from '../table.ts';

interface JsonFlags extends ConnectionFlags {
  readonly json?: boolean;
}

export interface ListLocksFlags extends JsonFlags {
  readonly volume?: string;
  readonly state?: 'held' | 'waiting';
  readonly olderThan?: number;
}

export interface BreakFlags extends JsonFlags {
  readonly reason: string;
  readonly grace?: number;
  readonly lease?: readonly string[];
}

export function showLock(context: CommandContext, resource: string, flags: JsonFlags): Promise<number> {
  return withClient(context, flags, async (client, signal) => {
    const lock = await client.lock(resource, { signal });
    if (flags.json === true) {
      outJson(context.screen, lock);
      return EXIT.ok;
    }
    outFacts(context.screen, {
      resource: lock.resource,
      state: stateOf(lock),
      'high-water mark': lock.high_water_mark,
      'in line': lock.queue_length,
      'wait estimate': lock.wait_estimate_ms === null ? null : shownDuration(lock.wait_estimate_ms),
      'held back for': heldBack(lock),
      'other recipes': lock.foreign_contenders.length === 0 ? null : lock.foreign_contenders.join(', '),
      'fence level': lock.fence_level,
    });
    const rows = [...lock.holders.map((party) => partyRow('holds', party)), ...lock.waiters.map((party) => partyRow('waits', party))];
    if (rows.length > 0) {
      context.screen.out('\n');
      await outTable(context.screen, ['', 'CLIENT', 'SINCE', 'EXPIRES IN', 'TTL', 'LOCK-DELAY', 'PRIORITY', 'LEASE', 'REASON'], rows);
    }
    return EXIT.ok;
  });
}

export function listLocks(context: CommandContext, flags: ListLocksFlags): Promise<number> {
  return withClient(context, flags, async (client, signal) => {
    const locks: Lock[] = [];
    const filter = {
      ...(flags.volume === undefined ? {} : { volume: flags.volume }),
      ...(flags.state === undefined ? {} : { state: flags.state }),
      ...(flags.olderThan === undefined ? {} : { olderThanMs: flags.olderThan }),
      signal,
    };
    for await (const lock of client.locks(filter)) {
      if (flags.json === true) outJson(context.screen, lock);
      else locks.push(lock);
    }
    if (flags.json === true) return EXIT.ok;
    const rows = locks.map((lock) => [
      lock.resource,
      lock.mode,
      lock.holders.map((holder) => holder.client_id ?? '?').join(', '),
      lock.holders[0]?.since ?? null,
      lock.queue_length,
      lock.high_water_mark,
      heldBack(lock),
      lock.foreign_contenders.length,
      lock.fence_level,
    ]);
    await outTable(context.screen, ['RESOURCE', 'MODE', 'HOLDERS', 'SINCE', 'IN LINE', 'MARK', 'HELD BACK', 'OTHERS', 'FENCE'], rows);
    return EXIT.ok;
  });
}

export function breakLock(context: CommandContext, resource: string, flags: BreakFlags): Promise<number> {
  return withOrder(context, flags, async (client, signal) => {
    const grace = flags.grace === undefined ? {} : { graceMs: flags.grace };
    // By name, so that an answer that was lost may be asked for again and is nobody else's break.
    const lock = flags.lease === undefined ? await client.lock(resource, { signal }) : null;
    const leaseRefs = flags.lease ?? lock?.holders.map(({ lease_ref: ref }) => ref) ?? [];
    if (leaseRefs.length === 0) return nothingToBreak(context, `${resource} ${whyUnbreakable(lock?.foreign_contenders ?? [])}`);
    let report: BreakReport;
    try {
      report = await client.breakLock(resource, { reason: flags.reason, ...grace, leaseRefs, signal });
    } catch (thrown) {
      if (isFencegateError(thrown, 'lease_not_held', 'lease_not_found'))
        return nothingToBreak(context, `${leaseRefs.join(', ')}: not held on ${resource} any more, and not ended by a break`);
      if (isFencegateError(thrown, 'outcome_unknown', 'gateway_unreachable'))
        context.host.complain(printable(`to ask for the same break again, and for no other, add --lease ${leaseRefs.join(' ')}`));
      throw thrown;
    }
    if (flags.json === true) {
      outJson(context.screen, report);
      return EXIT.ok;
    }
    outFacts(context.screen, {
      resource: report.resource,
      state: report.deadline === null ? report.state : `${report.state}, at the latest at ${report.deadline}`,
      'high-water mark': report.high_water_mark,
    });
    for (const lease of report.leases) {
      const { length } = lease.committed;
      const writes = lease.committed_truncated ? `more than the ${length} writes listed` : `${length} writes`;
      const token = lease.fencing_token === null ? 'not granted yet' : `token ${lease.fencing_token}`;
      context.screen.out(`\nlease ${lease.lease_ref} of ${printable(lease.client_id ?? '?')}, ${token}, had committed ${writes}\n`);
      if (lease.committed.length === 0) continue;
      const rows = lease.committed.map((write) => [write.at, write.action, write.resource, write.etag_before, write.etag_after, write.operation_id]);
      await outTable(context.screen, ['AT', 'ACTION', 'RESOURCE', 'ETAG BEFORE', 'ETAG AFTER', 'OPERATION'], rows);
    }
    return EXIT.ok;
  });
}

/** Who contends by another recipe holds as soon as nobody with a lease does. */
function stateOf({ holders, mode, foreign_contenders: others }: Lock): string {
  if (holders.length > 0) return `held, ${mode}`;
  return others.length === 0 ? 'free' : 'held by another program';
}

function whyUnbreakable(others: readonly string[]): string {
  if (others.length === 0) return 'is free: nobody holds it';
  return `is held by another program (${others.join(', ')}), which has no lease that could be broken`;
}

function nothingToBreak({ host }: CommandContext, why: string): number {
  host.complain(printable(`${why}, and nothing was changed`));
  host.complain('next: fencegate lock list shows what is held');
  return EXIT.failed;
}

function partyRow(does: string, party: LockParty): (string | number | null)[] {
  const delay = party.lock_delay_ms === 0 ? null : shownDuration(party.lock_delay_ms);
  return [
    does,
    party.client_id,
    party.since,
    shownDuration(party.expires_in_ms),
    shownDuration(party.ttl_ms),
    delay,
    party.priority,
    party.lease_ref,
    party.reason,
  ];
}

/** What is left of a lock-delay. */
function heldBack({ held_back_ms: leftMs }: Lock): string | null {
  return leftMs === 0 ? null : shownDuration(leftMs);
}

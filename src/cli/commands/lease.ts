import type { Lease } from '../../client/contract/answers.ts';
import type { Environment } from '../../config/environment.ts';
import type { CommandContext } from '../command-context.ts';
import { type ConnectionFlags, withClient } from '../connection.ts';
import { shownDuration } from '../durations.ts';
import { EXIT } from '../exit-codes.ts';
import { namingHolder } from '../holder.ts';
import { outJson } from '../screen.ts';
import { outFacts } from '../table.ts';
import { UsageError } from '../usage-error.ts';

export interface LeaseFlags extends ConnectionFlags {
  readonly json?: boolean;
}

export interface AcquireFlags extends LeaseFlags {
  readonly shared?: boolean;
  readonly wait?: number;
  readonly ttl?: number;
  readonly export?: boolean;
  readonly reason?: string;
}

export interface RenewFlags extends LeaseFlags {
  readonly ttl?: number;
}

/** The lease outlives the command: it ends by `lease release`, or when its time to live is over. */
export function acquireLease(context: CommandContext, resource: string, flags: AcquireFlags): Promise<number> {
  return withClient(context, flags, async (client, signal) => {
    const lease = await namingHolder(client, resource, () =>
      client.unattended.acquire(resource, {
        mode: flags.shared === true ? 'shared' : 'exclusive',
        ...(flags.ttl === undefined ? {} : { ttlMs: flags.ttl }),
        ...(flags.wait === undefined ? {} : { waitMs: flags.wait }),
        ...(flags.reason === undefined ? {} : { metadata: { reason: flags.reason } }),
        signal,
      }),
    );
    if (flags.export === true) context.screen.out(exportLines(resource, lease));
    else outLease(context, lease, flags);
    return EXIT.ok;
  });
}

export function renewLease(context: CommandContext, leaseId: string | undefined, flags: RenewFlags): Promise<number> {
  return withClient(besideExec(context), flags, async (client, signal) => {
    outLease(
      context,
      await client.unattended.renew(idOf(leaseId, context.environment), {
        ...(flags.ttl === undefined ? {} : { ttlMs: flags.ttl }),
        signal,
      }),
      flags,
    );
    return EXIT.ok;
  });
}

export function releaseLease(context: CommandContext, leaseId: string | undefined, flags: LeaseFlags): Promise<number> {
  return withClient(besideExec(context), flags, async (client, signal) => {
    await client.unattended.release(idOf(leaseId, context.environment), { signal });
    if (flags.json === true) outJson(context.screen, { state: 'released' });
    return EXIT.ok;
  });
}

/** The id alone is enough here; the client would want all of what `exec` sets. */
function besideExec(context: CommandContext): CommandContext {
  const { FENCEGATE_RESOURCE: _resource, FENCEGATE_LEASE_ID: _id, FENCEGATE_FENCING_TOKEN: _token, ...environment } = context.environment;
  return { ...context, environment };
}

/** The id is a secret, so the environment is the better place for it. */
function idOf(given: string | undefined, environment: Environment): string {
  const id = given ?? environment['FENCEGATE_LEASE_ID'] ?? '';
  if (id === '') throw new UsageError('which lease? set FENCEGATE_LEASE_ID, or name the lease id');
  return id;
}

function outLease({ screen }: CommandContext, lease: Lease, { json }: LeaseFlags): void {
  if (json === true) {
    outJson(screen, lease);
    return;
  }
  outFacts(screen, {
    resource: lease.resources.join(', '),
    state: lease.state,
    mode: lease.mode,
    'fencing token': lease.signed_token ?? lease.fencing_token,
    'lease id': lease.lease_id,
    'expires in': shownDuration(lease.expires_in_ms),
  });
}

function exportLines(resource: string, lease: Lease): string {
  const variables = {
    FENCEGATE_RESOURCE: resource,
    FENCEGATE_LEASE_ID: lease.lease_id,
    FENCEGATE_FENCING_TOKEN: lease.signed_token ?? lease.fencing_token ?? '',
  };
  const lines = Object.entries(variables).map(([name, value]) => `export ${name}='${value.replaceAll("'", String.raw`'\''`)}'\n`);
  return lines.join('');
}

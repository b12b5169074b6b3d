import type { ClientEventListener } from '../../client/client-events.ts';
import type { FencegateClient } from '../../client/fencegate-client.ts';
import type { LeaseHandle } from '../../client/lease-handle.ts';
import type { Environment } from '../../config/environment.ts';
import { leaseTimes } from '../child/lease-times.ts';
import { runUnderLease } from '../child/under-lease.ts';
import type { CommandContext } from '../command-context.ts';
import { type ConnectionFlags, clientEnvironment, closeSoon, openClient } from '../connection.ts';
import { shownDuration } from '../durations.ts';
import { interruptible } from '../interruptible.ts';
import { printable } from '../printable.ts';

/** Durations in ms. */
export interface LeaseFlags extends ConnectionFlags {
  readonly shared?: boolean;
  readonly wait?: number;
  readonly ttl?: number;
  readonly grace?: number;
  readonly maxHold?: number;
  readonly priority?: number;
}

export interface ExecFlags extends LeaseFlags {
  readonly lock: string;
}

const WAIT_MS_DEFAULT = 30_000;

/**
 * Runs a command under a lease, which is renewed until the command has ended, and then released. Resolves with the command's exit code, or
 * with 70 when the lease was lost.
 */
export async function execUnderLock(context: CommandContext, argv: readonly string[], flags: ExecFlags): Promise<number> {
  const [command = '', ...args] = argv;
  const { graceMs } = leaseTimes(flags);
  const client = await openClient(context.environment, flags, tellsOfBreak(context));
  try {
    const lease = await takeLease(client, flags.lock, flags);
    const environment = { ...clientEnvironment(context.environment, flags), ...leaseVariables(lease, flags.lock) };
    const end = await runUnderLease(context, { lease, command, args, environment, graceMs });
    await giveBack(context, lease);
    return end.code;
  } finally {
    await closeSoon(client);
  }
}

/** An administrator's grace is told to whoever sits at the terminal: the command may come to its end in time. */
export function tellsOfBreak({ host }: CommandContext): ClientEventListener {
  return (event) => {
    if (event.type !== 'lease_breaking') return;
    const { resources, reason, remainingMs } = event;
    host.complain(
      printable(
        `${resources.join(', ')}: an administrator ends the lease${reason === null ? '' : `: ${reason}`}. The command has ${shownDuration(remainingMs)}.`,
      ),
    );
  };
}

/** Stands in line; SIGINT and SIGTERM leave it. Rejects with `Interrupted`, `UsageError`, or as `client.lease` does. */
export async function takeLease(client: FencegateClient, resource: string, flags: LeaseFlags): Promise<LeaseHandle> {
  const { ttlMs, marginMs } = leaseTimes(flags);
  return interruptible((signal) =>
    client.lease(resource, {
      mode: flags.shared === true ? 'shared' : 'exclusive',
      waitMs: flags.wait ?? WAIT_MS_DEFAULT,
      ttlMs,
      marginMs,
      ...(flags.maxHold === undefined ? {} : { maxHoldMs: flags.maxHold }),
      ...(flags.priority === undefined ? {} : { priority: flags.priority }),
      signal,
    }),
  );
}

/** What the child finds its lease by. */
export function leaseVariables(lease: LeaseHandle, resource: string): Environment {
  return { FENCEGATE_RESOURCE: resource, FENCEGATE_LEASE_ID: lease.leaseId, FENCEGATE_FENCING_TOKEN: lease.writeToken };
}

/** A release that is not confirmed changes nothing about what the command did. */
export async function giveBack({ host }: CommandContext, lease: LeaseHandle): Promise<void> {
  try {
    await lease.release();
  } catch (thrown) {
    host.complain(`the release was not confirmed (${thrown instanceof Error ? thrown.message : String(thrown)}); the lease ends by itself`);
  }
}

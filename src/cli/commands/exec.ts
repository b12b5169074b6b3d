import type { ClientEventListener } from '../../client/client-events.ts';
import { isFencegateError } from '../../client/errors.ts';
import type { FencegateClient } from '../../client/fencegate-client.ts';
import type { LeaseHandle } from '../../client/lease-handle.ts';
import type { Environment } from '../../config/environment.ts';
import { leaseTimes } from '../child/lease-times.ts';
import { runUnderLease } from '../child/under-lease.ts';
import type { CommandContext } from '../command-context.ts';
import { type ConnectionFlags, clientEnvironment, closeSoon, openClient } from '../connection.ts';
import { shownDuration } from '../durations.ts';
import { EXIT } from '../exit-codes.ts';
import { namingHolder } from '../holder.ts';
import { interruptible } from '../interruptible.ts';
import { printable } from '../printable.ts';
import { sayWithoutWaiting } from '../standard-error.ts';

/** Durations in ms. */
export interface LeaseFlags extends ConnectionFlags {
  readonly shared?: boolean;
  readonly wait?: number;
  readonly ttl?: number;
  readonly grace?: number;
  readonly maxHold?: number;
  readonly priority?: number;
  readonly reason?: string;
}

export interface ExecFlags extends LeaseFlags {
  readonly lock: string;
}

const WAIT_MS_DEFAULT = 30_000;
const CONFIRM_MS_MAX = 1_000;

/**
 * Runs a command under a lease, which is renewed until the command has ended, and then released. Resolves with the command's exit code, or
 * with 70 when the lease was lost.
 */
export async function execUnderLock(context: CommandContext, argv: readonly string[], flags: ExecFlags): Promise<number> {
  const [command = '', ...args] = argv;
  const { graceMs, marginMs } = leaseTimes(flags);
  sayWithoutWaiting();
  const client = await openClient(context.environment, flags, { onEvent: tellsOfBreak(context) });
  let reached = true;
  try {
    const lease = await takeLease(client, flags.lock, flags);
    const environment = { ...clientEnvironment(context.environment, flags), ...leaseVariables(lease, flags.lock) };
    const { code, lost } = await runUnderLease(context, { lease, command, args, environment, graceMs, marginMs });
    if (lost) {
      reached = isReached(lease);
      return code;
    }
    const wasAlone = await confirmed(context, lease);
    reached = await giveBack(context, lease);
    return wasAlone ? code : EXIT.leaseLost;
  } catch (thrown) {
    reached = !isFencegateError(thrown, 'gateway_unreachable');
    throw thrown;
  } finally {
    await closeSoon(client, reached);
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
    namingHolder(client, resource, () =>
      client.lease(resource, {
        mode: flags.shared === true ? 'shared' : 'exclusive',
        waitMs: flags.wait ?? WAIT_MS_DEFAULT,
        ttlMs,
        marginMs,
        ...(flags.maxHold === undefined ? {} : { maxHoldMs: flags.maxHold }),
        ...(flags.priority === undefined ? {} : { priority: flags.priority }),
        ...(flags.reason === undefined ? {} : { metadata: { reason: flags.reason } }),
        signal,
      }),
    ),
  );
}

/** A lease that was lost by our own clock was so because nobody answered. */
export function isReached({ signal }: LeaseHandle): boolean {
  return !(isFencegateError(signal.reason, 'lease_lost') && signal.reason.members['lost_by'] === 'clock');
}

/** What the child finds its lease by. */
export function leaseVariables(lease: LeaseHandle, resource: string): Environment {
  return { FENCEGATE_RESOURCE: resource, FENCEGATE_LEASE_ID: lease.leaseId, FENCEGATE_FENCING_TOKEN: lease.writeToken };
}

/** Whether the lease was held to the end. A break of the last moment may not have been told yet; where nobody can be asked, our clock has the word. */
async function confirmed({ host }: CommandContext, lease: LeaseHandle): Promise<boolean> {
  try {
    await lease.confirm({ signal: AbortSignal.timeout(CONFIRM_MS_MAX) });
  } catch (thrown) {
    if (!isFencegateError(thrown, 'lease_lost')) return true;
    host.complain(printable(`${lease.resources.join(', ')}: ${thrown.message} The command has ended by itself; its end was not under the lease.`));
    return false;
  }
  return true;
}

/** A release that is not confirmed changes nothing about what the command did. Resolves with whether the gateway was reached. */
export async function giveBack({ host }: CommandContext, lease: LeaseHandle): Promise<boolean> {
  try {
    await lease.release();
    return true;
  } catch (thrown) {
    host.complain(`the release was not confirmed (${thrown instanceof Error ? thrown.message : String(thrown)}); the lease ends by itself`);
    return false;
  }
}

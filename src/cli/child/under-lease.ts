import type { LeaseHandle } from '../../client/lease-handle.ts';
import type { Environment } from '../../config/environment.ts';
import type { CommandContext } from '../command-context.ts';
import { shownDuration } from '../durations.ts';
import { EXIT } from '../exit-codes.ts';
import { printable } from '../printable.ts';
import { ChildGroup, ChildNotStarted } from './child-group.ts';
import { SignalsToChild } from './signals-to-child.ts';

export interface CommandUnderLease {
  readonly lease: LeaseHandle;
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Environment;
  /** Between SIGTERM and SIGKILL, at most. */
  readonly graceMs: number;
  /** With the grace in it. */
  readonly marginMs: number;
}

/** Of what is left of a lease when it counts as lost, kept for SIGKILL itself, at most. */
const FOR_SIGKILL = 1 / 4;

/** How the command ended. `lost`: it was ended, or had ended, when the lease was over; its own code counts no more. */
export interface CommandEnd {
  readonly code: number;
  readonly lost: boolean;
}

/**
 * Runs a command for as long as the lease is certainly held. By our own clock that is over before it is over at the gateway (the margin of
 * the lease has the grace in it), so the command is gone before somebody else can be granted the resource, even when nobody can be asked.
 */
export async function runUnderLease(context: CommandContext, run: CommandUnderLease): Promise<CommandEnd> {
  const { lease, command, args, environment } = run;
  const lost = new Promise<'lost'>((resolve) => {
    const told = (): void => resolve('lost');
    if (lease.signal.aborted) told();
    else lease.signal.addEventListener('abort', told, { once: true });
  });
  // Looking at the state is what loses a lease whose time ran out while we were stopped.
  const signals = new SignalsToChild(() => lease.state !== 'lost');
  try {
    const group = await ChildGroup.start(command, args, environment);
    signals.to(group);
    const first = await Promise.race([group.ended, lost]);
    if (first !== 'lost' && lease.state !== 'lost') return { code: first, lost: false };
    const leftMs = graceOf(run);
    const line = lossLine(lease, leftMs());
    // The command first: a write to a terminal that stands still (Ctrl-S) or a pipe that nobody reads would hold up SIGKILL.
    const ended = await group.end(leftMs);
    context.host.complain(line);
    if (!ended) context.host.complain('the command did not end, even after SIGKILL: it hangs inside the kernel');
    return { code: EXIT.leaseLost, lost: true };
  } catch (thrown) {
    if (!(thrown instanceof ChildNotStarted)) throw thrown;
    context.host.complain(thrown.message);
    return { code: thrown.exitCode, lost: false };
  } finally {
    signals.end();
  }
}

/**
 * What is left of the grace: nothing when the lease may be over at the gateway, as after a sleep of this machine, or a stop of ours; and less than
 * was asked for where the gateway could promise less than grace and margin.
 */
function graceOf({ lease, graceMs, marginMs }: CommandUnderLease): () => number {
  const deadlineMs = performance.now() + graceMs;
  const forKillMs = Math.min(marginMs - graceMs, lease.keptForMs * FOR_SIGKILL);
  return () => Math.max(0, Math.min(deadlineMs - performance.now(), lease.keptForMs - forKillMs));
}

function lossLine(lease: LeaseHandle, graceMs: number): string {
  const reason: unknown = lease.signal.reason;
  const why = reason instanceof Error ? reason.message : 'The lease is lost.';
  const how = graceMs === 0 ? 'SIGKILL' : `SIGTERM, and SIGKILL after ${shownDuration(graceMs)}`;
  return printable(`${lease.resources.join(', ')}: ${why} The command was ended: ${how}.`);
}

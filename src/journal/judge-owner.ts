import { LIMITS } from '../domain/limits.ts';
import type { OwnerRow } from './owner-row.ts';
import type { ProcessIdentity } from './process-identity.ts';

/**
 * `gone`: its process has ended. `living`: leave it alone. `silent`: there, but it missed its heartbeats. `unjudged`: its pid
 * means nothing here (another boot or pid namespace), only its heartbeat counts: watch it for `watchMs`.
 */
export type OwnerVerdict =
  | { readonly kind: 'gone' }
  | { readonly kind: 'living'; readonly silentMs: number }
  | { readonly kind: 'silent'; readonly silentMs: number }
  | { readonly kind: 'unjudged'; readonly watchMs: number };

/** Judges the process in the owner row (`write-protocol.md`, Who owns a volume). Pure; `processGone` is asked only when a pid means something. */
export function judgeOwner(
  row: OwnerRow,
  here: { readonly identity: ProcessIdentity; readonly monotonicMs: number; readonly wallMs: number; readonly takeoverAfterMs: number },
  processGone: () => boolean,
): OwnerVerdict {
  const { identity, takeoverAfterMs } = here;
  if (row.bootId !== identity.bootId || row.pidNamespace !== identity.pidNamespace) {
    // The wall clock may shorten the wait (a rebooted machine should not wait for nobody), but it may have jumped, so some beats are always listened for.
    const quietMs = Math.max(0, here.wallMs - row.beatWallMs);
    const listenMs = Math.min(takeoverAfterMs, LIMITS.ownerHeartbeatMs * 3);
    return { kind: 'unjudged', watchMs: Math.max(listenMs, takeoverAfterMs - quietMs) };
  }
  if (processGone()) return { kind: 'gone' };
  const silentMs = Math.max(0, here.monotonicMs - row.beatMonotonicMs);
  return { kind: silentMs < takeoverAfterMs ? 'living' : 'silent', silentMs };
}

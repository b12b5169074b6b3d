import type { FencingToken } from './fencing-token.ts';

/**
 * The stamp of each volume as whoever mints tokens sees it: a token may be used on a volume only once the volume itself carries a
 * ceiling at or above it, so that a lost or restored journal can never lead to the same token twice.
 */
export interface TokenCeilings {
  /** Resolves when the ceiling of `volume` is durable at or above `token`; at once for a lock-only volume. Rejects with `volume_unavailable`. */
  reserve(volume: string, token: FencingToken): Promise<void>;
}

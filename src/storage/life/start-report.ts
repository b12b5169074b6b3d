import type { StampVerdict, VolumeFinding } from '../../domain/recovery.ts';
import type { Volume } from '../../domain/volume.ts';
import type { TokenStamp } from './token-stamp.ts';

/** What came of starting one volume. */
export type VolumeStartResult =
  | {
      readonly kind: 'open';
      readonly volume: Volume;
      /** `null` on a read-only volume, where no token is ever used. */
      readonly stamp: TokenStamp | null;
      /** The highest ceiling found on the volume; the token counter goes on above it. */
      readonly ceilingFound: bigint;
      readonly verdict: StampVerdict;
      /** Made once, kept through adoption; `null` on a read-only volume. */
      readonly volumeUuid: string | null;
      readonly findings: readonly VolumeFinding[];
      /** True when the directory `name` inside the gateway's own one is gone; false when something is in it. */
      readonly removeEmpty: (name: string) => Promise<boolean>;
      /** Ends the stamp's refreshing and closes what the start opened; never rejects. */
      readonly close: () => Promise<void>;
    }
  /** Somebody must do something: adopt it, or look at it. Not tried again by itself. */
  | { readonly kind: 'closed'; readonly reason: string; readonly ownedByAnother: boolean; readonly findings: readonly VolumeFinding[] }
  /** Nothing is written on it: there is nothing more to start. */
  | { readonly kind: 'lock_only' }
  /** Missing, it does not answer, or its owner lives: tried again. */
  | { readonly kind: 'unavailable'; readonly reason: string; readonly ownedByAnother: boolean; readonly findings: readonly VolumeFinding[] };

/** Thrown inside a start for what ends as `closed`. */
export class StartRefused extends Error {
  readonly finding: VolumeFinding['code'];

  constructor(finding: VolumeFinding['code'], reason: string) {
    super(reason);
    this.finding = finding;
  }
}

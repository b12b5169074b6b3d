import { GatewayError } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';

/** Bytes that lie staged, per principal and volume. A declared length is reserved before the body; other bodies as they arrive. */
export class StagedQuota {
  readonly #used = new Map<string, number>();

  /** Opens an account for one upload. `limitBytes` null: the default bound. */
  account(principal: string, volume: string, limitBytes: number | null): QuotaAccount {
    const key = `${volume}/${principal}`;
    const max = limitBytes ?? LIMITS.stagedBytesPerPrincipalDefault;
    let taken = 0;
    return {
      take: (bytes) => {
        const used = this.#used.get(key) ?? 0;
        if (used + bytes > max) throw over(max);
        this.#used.set(key, used + bytes);
        taken += bytes;
      },
      close: () => {
        const left = (this.#used.get(key) ?? 0) - taken;
        if (left <= 0) this.#used.delete(key);
        else this.#used.set(key, left);
        taken = 0;
      },
    };
  }
}

export interface QuotaAccount {
  /** Throws `insufficient_storage` when the principal's staged bytes would pass the bound. */
  take(bytes: number): void;
  close(): void;
}

function over(max: number): GatewayError {
  return new GatewayError('insufficient_storage', {
    detail: `The uploads in progress of this principal would pass ${max} bytes.`,
    members: { staged_bytes_max: max },
  });
}

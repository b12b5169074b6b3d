import { GatewayError } from '../domain/errors.ts';

/** What whoever still waits is answered. */
export function overdue(): GatewayError {
  return new GatewayError('draining', { detail: 'The gateway is shutting down.', retryAfterMs: 5_000 });
}

/** Whether the gateway stops: first it takes no new work, later it gives up what still runs. */
export class Stopping {
  readonly #deadline = new AbortController();
  #begun = false;

  readonly isDraining = (): boolean => this.#begun;

  /** Aborts, with the reason that everybody still waiting is answered, when draining has lasted long enough. */
  get deadline(): AbortSignal {
    return this.#deadline.signal;
  }

  begin(): void {
    this.#begun = true;
  }

  end(reason: GatewayError): void {
    this.#deadline.abort(reason);
  }
}

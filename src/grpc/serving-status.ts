import type { Server } from '@grpc/grpc-js';
import { HealthImplementation } from 'grpc-health-check';
import type { Clock, Timer } from '../domain/clock.ts';
import type { Health } from '../domain/health.ts';
import { LIMITS } from '../domain/limits.ts';
import { LOCK_SERVICE } from './contract.ts';

/** `grpc.health.v1.Health`: SERVING while `/readyz` says 200. The whole server ("") and the lock service are one. */
export class ServingStatus {
  readonly #health: Pick<Health, 'readiness'>;
  readonly #clock: Clock;
  readonly #told = new HealthImplementation();
  #serving: boolean | null = null;
  #timer: Timer | null = null;

  constructor(health: Pick<Health, 'readiness'>, clock: Clock) {
    this.#health = health;
    this.#clock = clock;
  }

  addTo(server: Server): void {
    this.#told.addToServer(server);
  }

  /** Looks now, and from now on every second. Readiness is read from memory. */
  start(): void {
    this.look();
    this.#timer = this.#clock.after(LIMITS.grpcHealthEveryMs, () => this.start());
  }

  /** Who watches is told only of a change. */
  look(): void {
    const { ready } = this.#health.readiness();
    if (ready === this.#serving) return;
    this.#serving = ready;
    for (const service of ['', LOCK_SERVICE]) this.#told.setStatus(service, ready ? 'SERVING' : 'NOT_SERVING');
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }
}

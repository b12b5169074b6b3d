import type { GatewayError } from '../../src/domain/errors.ts';
import { embeddedCoordination } from '../../src/locks/embedded/embedded-coordination.ts';
import { type LabOptions, LockLab } from './lock-lab.ts';

/** A lock service whose contact with its coordinator is what the test says; `null`: there is contact. */
export class ContactLab extends LockLab {
  readonly #contact: { refusal: GatewayError | null };

  constructor(refusal: GatewayError | null = null, options: Omit<LabOptions, 'coordination'> = {}) {
    const contact = { refusal };
    super({ ...options, coordination: (clock, queueMax) => ({ ...embeddedCoordination(clock, queueMax), refusal: () => contact.refusal }) });
    this.#contact = contact;
  }

  says(refusal: GatewayError | null): void {
    this.#contact.refusal = refusal;
  }
}

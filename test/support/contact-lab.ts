import type { GatewayError } from '../../src/domain/errors.ts';
import type { CoordinatorReadiness } from '../../src/domain/health.ts';
import { embeddedCoordination } from '../../src/locks/embedded/embedded-coordination.ts';
import { unavailable } from '../../src/locks/zookeeper/contact-refusals.ts';
import { type LabOptions, LockLab } from './lock-lab.ts';

type Listener = (state: CoordinatorReadiness['state']) => void;

interface Contact {
  refusal: GatewayError | null;
  readonly listeners: Listener[];
}

/** A lock service whose contact with its coordinator is what the test says; `null`: there is contact. */
export class ContactLab extends LockLab {
  readonly #contact: Contact;

  constructor(refusal: GatewayError | null = null, options: Omit<LabOptions, 'coordination'> = {}) {
    const contact: Contact = { refusal, listeners: [] };
    super({
      ...options,
      coordination: (clock, queueMax) => ({
        ...embeddedCoordination(clock, queueMax),
        refusal: () => contact.refusal,
        onState: (listener) => void contact.listeners.push(listener),
      }),
    });
    this.#contact = contact;
  }

  says(refusal: GatewayError | null): void {
    this.#contact.refusal = refusal;
  }

  /** The session is lost, and everybody is told. */
  lose(): void {
    this.says(unavailable());
    for (const listener of this.#contact.listeners) listener('lost');
  }
}

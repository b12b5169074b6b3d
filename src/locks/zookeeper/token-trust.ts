import type { Registration } from './registry.ts';

export interface TokenTrustOptions {
  /** The coordinator that an earlier process of this gateway trusted. */
  readonly before: string | null;
  /** The highest token that the journal knows at this moment. */
  readonly highestToken: () => bigint | null;
  /** Durable when it resolves. */
  readonly remember: (coordinatorId: string) => Promise<void>;
}

/** Tokens must never fall for a client: another coordinator, or one that was rebuilt or put back, needs a rebase first. */
export class TokenTrust {
  readonly #options: TokenTrustOptions;
  #trusted: string | null;
  readonly #before = new Set<string>();
  #reason: string | null = null;

  constructor(options: TokenTrustOptions) {
    this.#options = options;
    this.#trusted = options.before;
    this.#note();
  }

  /** Why nothing may be granted although there is contact. */
  get reason(): string | null {
    return this.#reason;
  }

  get coordinatorId(): string | null {
    return this.#trusted;
  }

  /** All that were trusted in the life of this process and the last one: what is on volumes may still name them. */
  get before(): readonly string[] {
    return [...this.#before];
  }

  async judge({ coordinatorId, base, zxid }: Registration): Promise<void> {
    const highest = this.#options.highestToken();
    const another = this.#trusted !== coordinatorId && highest !== null;
    const behind = highest !== null && base + zxid <= highest;
    if (another || behind) {
      const what = another ? 'is not the one that gave the tokens so far' : 'is behind the tokens that it gave (it was rebuilt or put back)';
      this.#distrust(what);
    } else if (this.#trusted !== coordinatorId) await this.rebased(coordinatorId);
  }

  /** Seen while a session went on. Whatever the next one finds, somebody has to say that it is meant. */
  wentBack(): void {
    this.#distrust('does not know what it knew (it was put back)');
  }

  /** From now on its tokens are above those of before. */
  async rebased(coordinatorId: string): Promise<void> {
    await this.#options.remember(coordinatorId);
    this.#trusted = coordinatorId;
    this.#note();
    this.#reason = null;
  }

  #distrust(what: string): void {
    this.#reason = `The coordinator ${what}; nothing is granted until "fencegate fence rebase".`;
  }

  #note(): void {
    if (this.#trusted !== null) this.#before.add(this.#trusted);
  }
}

import type { FromChild } from './child-protocol.ts';

export interface AnswersTogetherOptions {
  readonly send: (message: FromChild) => void;
  /** Calls `flush` after a moment. */
  readonly afterMoment: (flush: () => void) => void;
  /** Calls `end` when what arrived together was asked for. */
  readonly afterTurn: (end: () => void) => void;
}

interface Group {
  unanswered: number;
  /** Whether anything in it waits for a commit of the ensemble. */
  readonly changes: boolean;
}

/**
 * Answers to requests that went down the pipe together come one by one, and each one that is passed on wakes the gateway's process, which costs
 * more than what it says. So they are passed on when the last one is there, or after a moment. Reads that were asked for before any change are
 * answered long before it is committed, so they wait for each other only.
 */
export class AnswersTogether {
  readonly #options: AnswersTogetherOptions;
  readonly #kept: FromChild[] = [];
  readonly #groups = new Map<number, Group>();
  #asking: Group | null = null;
  #flushing = false;

  constructor(options: AnswersTogetherOptions) {
    this.#options = options;
  }

  /** A request was sent. */
  asked(id: number, change: boolean): void {
    if (this.#asking === null) {
      this.#asking = { unanswered: 0, changes: change };
      this.#options.afterTurn(() => {
        this.#asking = null;
      });
    } else if (change && !this.#asking.changes) {
      this.#asking = { unanswered: 0, changes: true };
    }
    this.#asking.unanswered += 1;
    this.#groups.set(id, this.#asking);
  }

  say(message: FromChild): void {
    this.#kept.push(message);
    // What an old connection was asked is answered by nobody.
    if (message.kind === 'connected' || message.kind === 'disconnected') {
      this.#groups.clear();
      this.#asking = null;
    }
    if ((message.kind === 'answer' || message.kind === 'failure') && this.#othersFollow(message.id)) this.#flushSoon();
    else this.#flush();
  }

  #othersFollow(id: number): boolean {
    const group = this.#groups.get(id);
    this.#groups.delete(id);
    if (group === undefined) return false;
    group.unanswered -= 1;
    return group.unanswered > 0;
  }

  #flush(): void {
    for (const message of this.#kept.splice(0)) this.#options.send(message);
  }

  #flushSoon(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    this.#options.afterMoment(() => {
      this.#flushing = false;
      this.#flush();
    });
  }
}

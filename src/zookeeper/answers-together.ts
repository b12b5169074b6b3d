import type { FromChild } from './child-protocol.ts';

/**
 * Answers to requests that went down the pipe together come one by one, and each one that is passed on wakes the gateway's process, which costs
 * more than what it says. So they are passed on when the last one is there, or after a moment.
 */
export class AnswersTogether {
  readonly #send: (message: FromChild) => void;
  readonly #afterMoment: (flush: () => void) => void;
  readonly #kept: FromChild[] = [];
  #unanswered = 0;
  #flushing = false;

  constructor(send: (message: FromChild) => void, afterMoment: (flush: () => void) => void) {
    this.#send = send;
    this.#afterMoment = afterMoment;
  }

  /** A request was sent. */
  asked(): void {
    this.#unanswered += 1;
  }

  say(message: FromChild): void {
    this.#kept.push(message);
    const answer = message.kind === 'answer' || message.kind === 'failure';
    if (answer) this.#unanswered = Math.max(0, this.#unanswered - 1);
    // What an old connection was asked is answered by nobody.
    if (message.kind === 'connected' || message.kind === 'disconnected') this.#unanswered = 0;
    if (answer && this.#unanswered > 0) this.#flushSoon();
    else this.#flush();
  }

  #flush(): void {
    for (const message of this.#kept.splice(0)) this.#send(message);
  }

  #flushSoon(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    this.#afterMoment(() => {
      this.#flushing = false;
      this.#flush();
    });
  }
}

import type { ChildGroup } from './child-group.ts';

/** What somebody sends to us is meant for the command: it decides what to do about it. */
const PASSED_ON = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'] as const;

/**
 * Passes signals on to a group, and stops and goes on together with it (Ctrl-Z). Made before the group is started, so that none is missed
 * that comes in between: it would end us and leave the command alone.
 */
export class SignalsToChild {
  readonly #mayGoOn: () => boolean;
  #group: ChildGroup | null = null;
  #missed: NodeJS.Signals[] = [];

  /** `mayGoOn` is asked before the group goes on; whoever says no ends it. */
  constructor(mayGoOn: () => boolean) {
    this.#mayGoOn = mayGoOn;
    for (const signal of PASSED_ON) process.on(signal, this.#passOn);
    process.on('SIGTSTP', this.#stop);
    process.on('SIGCONT', this.#resume);
  }

  to(group: ChildGroup): void {
    this.#group = group;
    for (const signal of this.#missed) group.signal(signal);
    this.#missed = [];
  }

  end(): void {
    for (const signal of PASSED_ON) process.off(signal, this.#passOn);
    process.off('SIGTSTP', this.#stop);
    process.off('SIGCONT', this.#resume);
  }

  readonly #passOn = (signal: NodeJS.Signals): void => {
    if (this.#group === null) this.#missed.push(signal);
    else this.#group.signal(signal);
  };

  readonly #stop = (): void => {
    this.#group?.signal('SIGSTOP');
    process.kill(process.pid, 'SIGSTOP');
  };

  readonly #resume = (): void => {
    if (this.#mayGoOn()) this.#group?.signal('SIGCONT');
  };
}

import type { FileCalls } from '../../src/storage/file-calls.ts';

type CallName = { [K in keyof FileCalls]: FileCalls[K] extends (...args: never[]) => Promise<unknown> ? K : never }[keyof FileCalls];
type Hook = (real: () => Promise<unknown>, args: readonly unknown[]) => Promise<unknown>;

/** A system error as Node makes it. ESTALE has no name there (trap X1). */
export function systemError(name: string, errno: number): NodeJS.ErrnoException {
  const code = name === 'ESTALE' ? 'Unknown system error -116' : name;
  return Object.assign(new Error(`${code}: made by a test`), { code, errno: -errno });
}

export const EIO = (): NodeJS.ErrnoException => systemError('EIO', 5);
export const ENOSPC = (): NodeJS.ErrnoException => systemError('ENOSPC', 28);
export const ESTALE = (): NodeJS.ErrnoException => systemError('ESTALE', 116);

/** The real calls, except where a test steps in between. */
export class FaultCalls {
  readonly calls: FileCalls;
  readonly log: string[] = [];
  readonly #hooks = new Map<string, Hook>();

  constructor(real: FileCalls) {
    this.calls = new Proxy(real, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== 'function' || typeof name !== 'string') return member;
        return (...args: unknown[]): unknown => {
          this.log.push(name);
          const call = (): Promise<unknown> => Reflect.apply(member, target, args) as Promise<unknown>;
          const hook = this.#hooks.get(name);
          return hook === undefined ? call() : hook(call, args);
        };
      },
    });
  }

  /** From now on `hook` answers the calls of this name; it may make the real one. */
  on(name: CallName, hook: Hook): void {
    this.#hooks.set(name, hook);
  }

  /** The next call of this name fails without being made, or, with `after`, once it was made. */
  failOnce(name: CallName, error: () => Error, when: 'before' | 'after' = 'before'): void {
    this.on(name, async (real) => {
      this.#hooks.delete(name);
      if (when === 'after') await real();
      throw error();
    });
  }

  heal(): void {
    this.#hooks.clear();
  }
}

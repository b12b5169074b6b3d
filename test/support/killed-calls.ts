import { closeSync } from 'node:fs';
import { Descriptor } from '../../src/storage/descriptor.ts';
import type { FileCalls } from '../../src/storage/file-calls.ts';

/** What a call answers once its process is dead. It is no error that product code knows, so nothing handles it. */
export class Killed extends Error {}

/** The calls that change something; a kill between two others cannot be told apart. */
const CHANGES: ReadonlySet<string> = new Set([
  'writeAll',
  'fsync',
  'ftruncate',
  'fchmod',
  'fchown',
  'setMtime',
  'carryAttributes',
  'inheritAcl',
  'passNothingOn',
  'rename',
  'link',
  'unlink',
  'mkdir',
  'mkdirOwn',
  'rmdir',
  'reflink',
]);

/** Counts the changes that a process makes and ends it before the `killAt`-th (0 = never). The journal counts through `step`. */
export class KillSwitch {
  readonly #killAt: number;
  readonly #opened = new Set<Descriptor>();
  #steps = 0;

  constructor(killAt: number) {
    this.#killAt = killAt;
  }

  get steps(): number {
    return this.#steps;
  }

  get dead(): boolean {
    return this.#killAt !== 0 && this.#steps >= this.#killAt;
  }

  /** One change is about to be made. */
  step(): void {
    if (!this.dead) this.#steps += 1;
    if (this.dead) throw new Killed('killed');
  }

  /** What the kernel does for a process that is gone: an NFS client keeps a removed file for as long as somebody has it open. */
  closeAll(): void {
    for (const descriptor of this.#opened) descriptor.end(() => closeSync(descriptor.fd));
    this.#opened.clear();
  }

  /** The real calls for as long as the process lives; a write that the kill meets is made in part. */
  over(real: FileCalls): FileCalls {
    return new Proxy(real, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== 'function' || typeof name !== 'string') return member;
        return async (...args: unknown[]): Promise<unknown> => {
          if (name === 'close') return Reflect.apply(member, target, args); // the kernel closes for the dead
          if (this.dead) throw new Killed('killed');
          const opens = name === 'open' && ((args[1] as number) & 0o100) !== 0;
          if (CHANGES.has(name) || opens) {
            try {
              this.step();
            } catch (thrown) {
              if (name === 'writeAll') {
                const bytes = args[1] as Uint8Array;
                await Reflect.apply(member, target, [args[0], bytes.subarray(0, Math.floor(bytes.length / 2)), args[2]]);
              }
              throw thrown;
            }
          }
          const made: unknown = await Reflect.apply(member, target, args);
          if (made instanceof Descriptor) this.#opened.add(made);
          return made;
        };
      },
    });
  }
}

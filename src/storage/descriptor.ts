import { nameOnDisk } from '../domain/segment-bytes.ts';

/**
 * A held file descriptor. A call that ran over its deadline is still in the kernel, or still in the queue of the thread pool, with
 * this number in its hands; if the number were closed it could be given to another file, and the late write or rename would hit that one.
 * So a descriptor is closed only when the last call on it has really ended.
 */
export class Descriptor {
  readonly fd: number;
  #uses = 0;
  #closed = false;
  #closeWhenIdle: (() => void) | null = null;

  constructor(fd: number) {
    this.fd = fd;
  }

  get closed(): boolean {
    return this.#closed;
  }

  get busy(): boolean {
    return this.#uses > 0;
  }

  /** Takes part in a call. Throws after `close`: using a closed number would be a bug that touches a stranger's file. */
  enter(): void {
    if (this.#closed) throw new Error('a descriptor was used after it was closed');
    this.#uses += 1;
  }

  leave(): void {
    this.#uses -= 1;
    if (this.#uses > 0 || this.#closeWhenIdle === null) return;
    const close = this.#closeWhenIdle;
    this.#closeWhenIdle = null;
    close();
  }

  /**
   * Ends the descriptor; `close` is called now, or when the last call on it has ended.
   * @returns false when it was ended before.
   */
  end(close: () => void): boolean {
    if (this.#closed) return false;
    this.#closed = true;
    if (this.#uses === 0) close();
    else this.#closeWhenIdle = close;
    return true;
  }
}

/** A name in a directory that is held open. */
export interface At {
  readonly dir: Descriptor;
  readonly name: string | Buffer;
}

export function at(dir: Descriptor, name: string | Buffer): At {
  return { dir, name };
}

/**
 * The path by which Linux reaches a name below a held directory (Node has no `openat`): a directory that was renamed or replaced
 * meanwhile is still the one that was walked to.
 */
export function procPath({ dir, name }: At): string | Buffer {
  const parent = `${procFd(dir)}/`;
  const onDisk = typeof name === 'string' ? nameOnDisk(name) : name;
  return typeof onDisk === 'string' ? parent + onDisk : Buffer.concat([Buffer.from(parent), onDisk]);
}

/** The same for what is held itself, also when it was opened by `O_PATH`. */
export function procFd({ fd }: Descriptor): string {
  return `/proc/self/fd/${fd}`;
}

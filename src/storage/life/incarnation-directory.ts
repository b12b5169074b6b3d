import type { Random } from '../../domain/clock.ts';
import { type At, at, type Descriptor } from '../descriptor.ts';
import type { FileCalls } from '../file-calls.ts';
import { LateRenames } from '../late-renames.ts';
import { Litter } from '../litter.ts';
import { draftNameOf } from './volume-names.ts';
import { OPEN_DIRECTORY, type OwnDirectory } from './whole-file.ts';

/**
 * The directory of one incarnation (`write-protocol.md`, "What the storage itself enforces"). Every change of a file's name has it
 * as source or target, so removing it makes every late system call of its process fail. Its name is never used twice.
 * Whether that has happened is told by `../fence.ts` from the descriptor that is held here.
 */
export class IncarnationDirectory implements OwnDirectory {
  readonly name: string;
  readonly descriptor: Descriptor;
  readonly litter = new Litter();
  readonly lateRenames = new LateRenames();
  #draftCount = 0;
  readonly #calls: FileCalls;

  private constructor(calls: FileCalls, name: string, descriptor: Descriptor) {
    this.name = name;
    this.descriptor = descriptor;
    this.#calls = calls;
  }

  /** Makes a new one below `control`, durable, and holds it open. The caller publishes the name. One that cannot be held, or made durable, is removed. */
  static async make(calls: FileCalls, control: Descriptor, random: Random): Promise<IncarnationDirectory> {
    const name = Buffer.from(random.bytes(16)).toString('hex');
    const opened: Descriptor[] = [];
    try {
      await calls.mkdirOwn(at(control, name), 0o700);
      const descriptor = await calls.open(at(control, name), OPEN_DIRECTORY);
      opened.push(descriptor);
      await passNothingOn(calls, descriptor);
      await calls.fsync(descriptor);
      await calls.fsync(control);
      return new IncarnationDirectory(calls, name, descriptor);
    } catch (thrown) {
      for (const descriptor of opened) await calls.close(descriptor).catch(() => undefined); // nothing was written through it
      // Also after a failed mkdir: a server may have made it and not been able to say so. The name is nobody else's.
      await calls.rmdir(at(control, name)).catch(() => undefined);
      throw thrown;
    }
  }

  entry(name: string | Buffer): At {
    return at(this.descriptor, name);
  }

  draftName(target: string): string {
    this.#draftCount += 1;
    return draftNameOf(`${this.name}-${this.#draftCount}-${target}`);
  }

  async sync(): Promise<void> {
    await this.#calls.fsync(this.descriptor);
  }

  async close(): Promise<void> {
    await this.#calls.close(this.descriptor);
  }
}

/** Files that are made here take the rights of the place where they end, not those that the root of the volume hands down (trap F27). */
async function passNothingOn(calls: FileCalls, descriptor: Descriptor): Promise<void> {
  await calls.fchmod(descriptor, 0o700);
  await calls.passNothingOn(descriptor);
}

import { constants } from 'node:fs';
import { refuse } from '../domain/errors.ts';
import type { TargetFacts } from '../domain/file-facts.ts';
import type { At, Descriptor } from './descriptor.ts';
import { errnoOf } from './errno.ts';
import type { FileCalls } from './file-calls.ts';
import { openFresh } from './open-fresh.ts';
import type { HeldPlace } from './path-walk.ts';
import type { VolumeRoom } from './room.ts';
import { factsOf, O_PATH } from './target-kind.ts';

/** What a network mount answers for a name that is there but cannot be opened for reading as a plain file. */
const NOT_OPENABLE: ReadonlySet<string> = new Set(['ELOOP', 'ENXIO', 'ENODEV', 'EISDIR', 'EACCES', 'EPERM']);

async function factsOfOpened(calls: FileCalls, opened: Descriptor): Promise<TargetFacts> {
  try {
    return factsOf(await calls.fstat(opened));
  } finally {
    // Nothing was written through it.
    await calls.close(opened).catch(() => undefined);
  }
}

/**
 * What is at a name, from `fstat` of a descriptor that was opened without following a link and without blocking (traps F9, F18, F28).
 * Locally `O_PATH` is enough and touches nothing: no FIFO's writer is let through, no device is woken. A network mount answers
 * from its cache unless the file is really opened, so there it is (close-to-open), and only what cannot be opened is named by `O_PATH`.
 * @returns `null` for ENOENT alone; every other error rejects (case B6: never "assume absent").
 */
export async function lookAtName(calls: FileCalls, name: At): Promise<TargetFacts | null> {
  try {
    if (!calls.local) {
      try {
        return await factsOfOpened(calls, await openFresh(calls, name, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK));
      } catch (thrown) {
        const errno = errnoOf(thrown);
        if (errno === null || !NOT_OPENABLE.has(errno)) throw thrown;
        const facts = await factsOfOpened(calls, await calls.open(name, O_PATH | constants.O_NOFOLLOW));
        // Facts of a plain file that may be out of date decide nothing.
        if (facts.kind === 'file') throw refuse('forbidden', 'The gateway may not read this file.');
        return facts;
      }
    }
    return await factsOfOpened(calls, await calls.open(name, O_PATH | constants.O_NOFOLLOW));
  } catch (thrown) {
    if (errnoOf(thrown) === 'ENOENT') return null;
    throw thrown;
  }
}

/** The same for a place; nothing is in a directory that does not exist. */
export async function lookAt(room: Pick<VolumeRoom, 'calls'>, place: HeldPlace): Promise<TargetFacts | null> {
  return place.dir === null ? null : lookAtName(room.calls, place.at);
}

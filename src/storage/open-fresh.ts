import type { At, Descriptor } from './descriptor.ts';
import { errnoOf } from './errno.ts';
import type { FileCalls } from './file-calls.ts';

/**
 * Opens a name. A network client remembers for half a minute that a name was missing, whatever others make meanwhile (trap X12), until
 * it learns that the directory has changed; opening the directory again asks the server for that. So ENOENT is believed only then.
 */
export async function openFresh(calls: FileCalls, name: At, flags: number): Promise<Descriptor> {
  try {
    return await calls.open(name, flags);
  } catch (thrown) {
    if (calls.local || errnoOf(thrown) !== 'ENOENT') throw thrown;
    const again = await calls.reopen(name.dir);
    await calls.close(again).catch(() => undefined); // a directory: nothing was written through it
    return calls.open(name, flags);
  }
}

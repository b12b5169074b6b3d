import { at, type Descriptor } from '../descriptor.ts';
import { errnoOf, mapped } from '../errno.ts';
import type { FileCalls } from '../file-calls.ts';

/**
 * Removes a directory inside `.fencegate` if nothing is in it; whoever made it and still lives is fenced by that. Durable when it resolves.
 * @returns whether it is gone; false when something is in it, which then nobody touched.
 */
export function removeEmptyDirectory(calls: FileCalls, control: Descriptor, name: string): Promise<boolean> {
  return mapped(async () => {
    try {
      await calls.rmdir(at(control, name));
    } catch (thrown) {
      const errno = errnoOf(thrown);
      if (errno === 'ENOTEMPTY' || errno === 'EEXIST') return false;
      if (errno !== 'ENOENT') throw thrown;
    }
    await calls.fsync(control);
    return true;
  });
}

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Writes a file `ballast` until nothing fits any more. */
export async function fillDisk(directory: string): Promise<void> {
  for (const bytes of [1_048_576, 65_536, 4_096, 512]) {
    const block = Buffer.alloc(bytes, 'b');
    try {
      for (;;) await writeFile(join(directory, 'ballast'), block, { flag: 'as' });
    } catch (thrown) {
      if (!(thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOSPC')) throw thrown;
    }
  }
}

import { randomBytes } from 'node:crypto';
import { cp, mkdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** `fixtures/volume` of this package, seen from `src/config` as from `dist/config`. */
const SAMPLE_FILES = fileURLToPath(new URL('../../fixtures/volume', import.meta.url));

/**
 * Makes the default volume with its sample files on the first start. All or nothing: copied beside, then renamed, so that a
 * start that was killed leaves no half of it. A volume that is there, empty or not, is never touched.
 */
export async function makeSampleVolume(path: string): Promise<void> {
  if (await exists(path)) return;
  const parent = dirname(path);
  await mkdir(parent, { recursive: true });
  const copy = join(parent, `.${basename(path)}.${randomBytes(6).toString('hex')}`);
  try {
    await cp(SAMPLE_FILES, copy, { recursive: true, errorOnExist: true, force: false });
    await rename(copy, path);
  } catch (thrown) {
    await rm(copy, { recursive: true, force: true });
    // Somebody else made it in between: that is what was wanted.
    if (await exists(path)) return;
    throw thrown;
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (thrown) {
    if (thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT') return false;
    throw thrown;
  }
}

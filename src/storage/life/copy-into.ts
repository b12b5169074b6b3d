import { type BigIntStats, constants } from 'node:fs';
import type { At, Descriptor } from '../descriptor.ts';
import { errnoOf } from '../errno.ts';
import type { FileCalls } from '../file-calls.ts';
import { eachChunk, withOpen } from './whole-file.ts';

/** A new file with the bytes, mode, owner and mtime of `source`, synced. Whatever was at `target` before is written over. */
export async function copyInto(calls: FileCalls, source: Descriptor, target: At): Promise<void> {
  const facts = await calls.fstat(source);
  await withOpen(calls, target, constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW, async (file) => {
    await eachChunk(calls, source, (chunk, position) => calls.writeAll(file, chunk, position));
    const made = await calls.fstat(file);
    if (made.uid !== facts.uid || made.gid !== facts.gid) await chownIfAllowed(calls, file, facts);
    await calls.fchmod(file, Number(facts.mode & 0o7777n));
    await calls.setMtime(file, facts.mtimeNs);
    await calls.fsync(file);
  });
}

async function chownIfAllowed(calls: FileCalls, file: Descriptor, facts: BigIntStats): Promise<void> {
  try {
    await calls.fchown(file, Number(facts.uid), Number(facts.gid));
  } catch (thrown) {
    // Only root may give files away; the bytes matter more than the name on them.
    if (errnoOf(thrown) !== 'EPERM') throw thrown;
  }
}

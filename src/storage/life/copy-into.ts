import { constants } from 'node:fs';
import type { At, Descriptor } from '../descriptor.ts';
import type { FileCalls } from '../file-calls.ts';
import { carryRights } from '../rights.ts';
import { factsOf } from '../target-kind.ts';
import { eachChunk, withOpen } from './whole-file.ts';

/** A new file with the bytes, rights, attributes and mtime of `source`, synced. Whatever was at `target` before is written over. */
export async function copyInto(calls: FileCalls, source: Descriptor, target: At): Promise<void> {
  const facts = factsOf(await calls.fstat(source));
  await withOpen(calls, target, constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW, async (file) => {
    await eachChunk(calls, source, (chunk, position) => calls.writeAll(file, chunk, position));
    await carryRights(calls, file, facts, source);
    await calls.setMtime(file, facts.mtimeNs);
    await calls.fsync(file);
  });
}

import type { FileFacts, StagedFacts } from '../../domain/file-facts.ts';
import { factsOf } from '../target-kind.ts';
import type { SettleRoom } from './settle-room.ts';
import { OPEN_READ, orAbsent, sha256Of, withOpen } from './whole-file.ts';

/**
 * The staged file's facts when it is whole, and durable from now on; `null` when it is missing or not what the intent says (which
 * proves nothing about the target). `copy`: a file staged for create-only may lie here as a copy with another inode; then its
 * bytes decide.
 */
export async function wholeStaged(deps: SettleRoom, staged: StagedFacts, accept: 'original' | 'copy'): Promise<FileFacts | null> {
  const { calls } = deps.room;
  return orAbsent(
    withOpen(calls, deps.directory.entry(staged.name), OPEN_READ, async (file) => {
      const facts = factsOf(await calls.fstat(file));
      if (facts.kind !== 'file' || facts.sizeBytes !== staged.sizeBytes) return null;
      const original = facts.ino === staged.ino && facts.mtimeNs === staged.mtimeNs;
      if (!original && accept === 'original') return null;
      // Without a digest there is nothing to hold the bytes against: not whole, and the write is aborted.
      if ((!original || deps.verify === 'digest') && (staged.sha256 === '' || (await sha256Of(calls, file)) !== staged.sha256)) return null;
      await calls.fsync(file);
      return facts;
    }),
  );
}

/** True when the staged file provably never became visible: it still has its own name, and no other one. */
export async function isStillStaged(deps: SettleRoom, staged: StagedFacts): Promise<boolean> {
  const { calls } = deps.room;
  const facts = await orAbsent(withOpen(calls, deps.directory.entry(staged.name), OPEN_READ, async (file) => factsOf(await calls.fstat(file))));
  return facts !== null && facts.ino === staged.ino && facts.links === 1;
}

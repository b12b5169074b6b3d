import { VolumeTaken } from '../../domain/volume-title.ts';
import type { Descriptor } from '../descriptor.ts';
import { claimOwner, OwnerUnreadable, readOwner, type VolumeOwner } from './owner-file.ts';
import type { Stamp } from './stamp.ts';
import type { StartContext, StartMode } from './start-deps.ts';
import { StartRefused } from './start-report.ts';
import { CONTROL_DIRECTORY, OWNER_FILE } from './volume-names.ts';

export interface JudgedOwner {
  /** The volume's own uuid. */
  readonly volume: string;
  /** What the owner file must say from now on, once every old directory is gone; `null`: it says so. */
  readonly becomes: string | null;
  /** False: it still says what we were before, and only a rebase changes that. */
  readonly isOwn: boolean;
}

/**
 * Whose the volume is by its owner file. One that says what this gateway was before (its own uuid under the embedded coordinator,
 * another ensemble) opens if nobody else had it since: the stamp is of our journal.
 * Throws `StartRefused`, and `VolumeTaken` for a volume of a gateway with which we shared the ensemble of before.
 */
export async function ownerOf(deps: StartContext, mode: StartMode, control: Descriptor, found: Stamp | null): Promise<JudgedOwner> {
  const { gateway, now, before } = deps.titles.owner();
  const { owner, volume } = await present(deps, mode, control, now);
  if (owner === now) return { volume, becomes: null, isOwn: true };
  if (mode === 'adopt') return { volume, becomes: now, isOwn: true };
  const wasOurs = before.includes(owner) && (found === null || found.journal === deps.journalUuid);
  if (!wasOurs) {
    if (before.includes(owner) && owner !== gateway) throw notYetOver(owner, now);
    throw new StartRefused(
      'foreign_owner',
      `It belongs to ${owner} (${CONTROL_DIRECTORY}/${OWNER_FILE}), and what is of ${now === gateway ? 'this gateway' : 'this coordinator'} to ${now}. Only an adoption opens it here.`,
    );
  }
  // No token was ever issued for it: there is nothing that a rebase would have to void.
  const unused = (found === null || found.last === 0n) && deps.journalKnows() === null;
  return mode === 'rebase' || unused ? { volume, becomes: now, isOwn: true } : { volume, becomes: null, isOwn: false };
}

/**
 * The ensemble was made anew, and the gateway that had the volume through it has not had it rebased: then it is that one's again, and ours when
 * it is gone, as before.
 */
function notYetOver(owner: string, now: string): VolumeTaken {
  const where = `${CONTROL_DIRECTORY}/${OWNER_FILE}`;
  return new VolumeTaken(
    `It belongs to ${owner} (${where}), which was our coordinator before ${now}. The gateway that had it is to rebase it; if there is none any more, an adoption opens it here.`,
    { lasting: false },
  );
}

async function present({ calls, random }: StartContext, mode: StartMode, control: Descriptor, owner: string): Promise<VolumeOwner> {
  if (mode !== 'adopt') return claimOwner(calls, control, owner, random);
  try {
    return (await readOwner(calls, control)) ?? (await claimOwner(calls, control, owner, random));
  } catch (thrown) {
    // An owner file that nobody can read is what an adoption is for; the volume's own uuid is lost with it.
    if (!(thrown instanceof OwnerUnreadable)) throw thrown;
    return { owner: '', volume: Buffer.from(random.bytes(16)).toString('hex') };
  }
}

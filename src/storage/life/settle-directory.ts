import type { Intent, Settled } from '../../domain/intent.ts';
import { errnoOf } from '../errno.ts';
import { atPlace, change, type SettleRoom, settled } from './settle-room.ts';

/** Directories carry no bytes; making one again or removing an empty one harms nobody. */

export function settleMkdir(deps: SettleRoom, intent: Intent): Promise<Settled> {
  return atPlace(deps, intent.resource, async (spot) => {
    const now = await spot.look();
    if (now !== null) {
      if (now.kind !== 'directory') return settled('unknown', now);
      await spot.sync();
      return settled('committed', now);
    }
    const outcome = await change(deps, async () => {
      await spot.withParents();
      await deps.room.calls.mkdir(spot.at);
    });
    const made = await spot.look();
    if (made?.kind === 'directory') {
      await spot.sync();
      return settled('finished', made);
    }
    return settled(outcome === 'refused' && made === null ? 'aborted' : 'unknown', made);
  });
}

export function settleRmdir(deps: SettleRoom, intent: Intent): Promise<Settled> {
  return atPlace(deps, intent.resource, async (spot) => {
    const now = await spot.look();
    if (now === null) {
      await spot.sync();
      return settled('committed', null);
    }
    if (now.kind !== 'directory' || (intent.before !== null && intent.before.ino !== now.ino)) return settled('unknown', now);
    let notEmpty = false;
    const outcome = await change(deps, async () => {
      try {
        await deps.room.calls.rmdir(spot.at);
      } catch (thrown) {
        // A directory that has entries is proof on every file system that it was not removed.
        notEmpty = errnoOf(thrown) === 'ENOTEMPTY' || errnoOf(thrown) === 'EEXIST';
        throw thrown;
      }
    });
    const left = await spot.look();
    if (left === null) {
      await spot.sync();
      return settled('finished', null);
    }
    return settled(notEmpty || outcome === 'refused' ? 'aborted' : 'unknown', left);
  });
}

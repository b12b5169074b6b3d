import type { Random } from '../../domain/clock.ts';
import { LIMITS } from '../../domain/limits.ts';
import { VolumeTaken } from '../../domain/volume-title.ts';
import { type ZkClient, ZkError } from './zk-client.ts';
import { failedWith, makePersistent } from './zk-nodes.ts';

/** `root/<volume>`: which volume has this name here, once and for all; resources are nodes below it. */
interface NamedVolume {
  readonly uuid: string;
  /** False: it is only locked, or only read, and its uuid stands nowhere but here. */
  readonly written: boolean;
}

export interface NameClaim {
  readonly volume: string;
  /** From the owner file; `null`: nothing is written on the volume. */
  readonly uuid: string | null;
  /** `adopt`: another volume's name may be taken if nobody who lives owns that one. */
  readonly how: 'plain' | 'adopt';
}

/** @returns the volume's uuid. Rejects with `VolumeTaken` when the name is another volume's. */
export async function claimName(client: ZkClient, root: string, random: Random, { volume, uuid, how }: NameClaim): Promise<string> {
  const wanted: NamedVolume = { uuid: uuid ?? Buffer.from(random.bytes(16)).toString('hex'), written: uuid !== null };
  const path = `${root}/${volume}`;
  await makePersistent(client, path, nameData(wanted));
  for (let tries = 0; tries < LIMITS.zookeeperSetsMax; tries += 1) {
    const { data, stat } = await client.get(path);
    const named = parseName(data);
    if (named !== null && named !== 'nobody' && named.written === wanted.written && (uuid === null || named.uuid === uuid)) return named.uuid;
    const free = named === 'nobody' || (how === 'adopt' && (named === null || !(await isOwned(client, root, named.uuid))));
    if (!free)
      throw new VolumeTaken(
        `At this coordinator the name ${volume} is another volume's (${named === null ? 'unreadable' : named.uuid}). Give the volume another name, or this gateway another lock root; an adoption takes the name if nobody owns that volume.`,
        { lasting: true },
      );
    try {
      await client.set(path, nameData(wanted), stat.version);
      return wanted.uuid;
    } catch (thrown) {
      if (!failedWith(thrown, 'bad_version')) throw thrown;
    }
  }
  throw new ZkError('unknown', 'the node of a volume is changed by somebody else again and again');
}

export function ownerPath(root: string, uuid: string): string {
  return `${root}/.owners/${uuid}`;
}

async function isOwned(client: ZkClient, root: string, uuid: string): Promise<boolean> {
  return (await client.exists(ownerPath(root, uuid))).stat !== null;
}

function nameData({ uuid, written }: NamedVolume): Uint8Array {
  return Buffer.from(JSON.stringify({ v: 1, volume: uuid, written }));
}

/** `nobody`: made by hand, with nothing in it. `null`: no version of ours wrote it. */
function parseName(data: Uint8Array): NamedVolume | 'nobody' | null {
  if (data.byteLength === 0) return 'nobody';
  const match = /^\{"v":1,"volume":"([0-9a-f]{32})","written":(true|false)\}$/.exec(Buffer.from(data).toString('utf8'));
  return match?.[1] === undefined ? null : { uuid: match[1], written: match[2] === 'true' };
}

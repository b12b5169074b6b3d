import type { Random } from '../../domain/clock.ts';
import { GatewayError } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { type ZkClient, ZkError } from './zk-client.ts';
import { makePersistent } from './zk-nodes.ts';

/** `root/.id`: which source of tokens this is, and what is added to each. A rebuilt ensemble has another id. */
export interface Identity {
  readonly coordinatorId: string;
  /** Tokens seen by clients are `base` + mzxid; it only grows. */
  readonly base: bigint;
}

/** Made by whoever comes first. Rejects with `coordinator_unavailable` when no version of ours wrote it. */
export async function identityOf(client: ZkClient, root: string, random: Random): Promise<Identity> {
  await makePersistent(client, pathBelow(root), identityData({ coordinatorId: Buffer.from(random.bytes(16)).toString('hex'), base: 0n }));
  return readIdentity(client, root);
}

export async function readIdentity(client: ZkClient, root: string): Promise<Identity> {
  return parseIdentity((await client.get(pathBelow(root))).data);
}

/** Tokens go on from `base`, for everybody who uses this coordinator. @returns the base that holds now, which may be higher. */
export async function raiseBase(client: ZkClient, root: string, base: bigint): Promise<bigint> {
  for (let tries = 0; tries < LIMITS.zookeeperSetsMax; tries += 1) {
    const { data, stat } = await client.get(pathBelow(root));
    const known = parseIdentity(data);
    if (known.base >= base) return known.base;
    try {
      await client.set(pathBelow(root), identityData({ ...known, base }), stat.version);
      return base;
    } catch (thrown) {
      if (!(thrown instanceof ZkError) || thrown.failure !== 'bad_version') throw thrown;
    }
  }
  throw new ZkError('unknown', 'the base is changed by somebody else again and again');
}

function pathBelow(root: string): string {
  return `${root}/.id`;
}

function identityData({ coordinatorId, base }: Identity): Uint8Array {
  return Buffer.from(JSON.stringify({ v: 1, id: coordinatorId, base: base.toString() }));
}

function parseIdentity(data: Uint8Array): Identity {
  const text = Buffer.from(data).toString('utf8');
  const match = /^\{"v":1,"id":"([0-9a-f]{32})","base":"([0-9]{1,19})"\}$/.exec(text);
  if (match?.[1] === undefined || match[2] === undefined)
    throw new GatewayError('coordinator_unavailable', {
      detail: 'The lock root has an identity that this version does not know.',
      retryAfterMs: 5_000,
    });
  return { coordinatorId: match[1], base: BigInt(match[2]) };
}

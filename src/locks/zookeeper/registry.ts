import { type Clock, type Random, randomName } from '../../domain/clock.ts';
import { GatewayError } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { type ZkClient, ZkError, type ZkStat } from './zk-client.ts';

/**
 * What a gateway writes about itself, and what everybody agrees on: the coordinator's id and base, who owns which volume, and which
 * incarnations there are. Every answer that is not known to be one rejects; the caller tries the whole registration again.
 */
export interface RegistryOptions {
  readonly client: ZkClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly root: string;
  /** This gateway's, from its data directory: whose volumes these are. */
  readonly gatewayUuid: string;
  readonly volumes: readonly string[];
}

export interface Registration {
  readonly coordinatorId: string;
  readonly base: bigint;
  /** Our own ephemeral node: a committed `set` of it is what proves the session. */
  readonly livePath: string;
  /** Of the registration: what is granted from now on has a higher number. */
  readonly zxid: bigint;
}

const NOTHING = new Uint8Array();
const IDENTITY = '.id';

/** Rejects with `volume_unavailable` when another gateway has a volume of this name; `coordinator_unavailable` while a living one owns it. */
export async function register(options: RegistryOptions): Promise<Registration> {
  const { client, random, root, gatewayUuid, volumes } = options;
  await makePath(client, root);
  for (const name of ['.gateways', '.owners']) await make(client, `${root}/${name}`, NOTHING);
  const { coordinatorId, base } = await identity(client, root, random);
  const incarnation = `${root}/.gateways/${randomName(random, 12)}`;
  await client.create(incarnation, Buffer.from(JSON.stringify({ gateway: gatewayUuid, volumes })), 'persistent');
  const livePath = `${incarnation}/live`;
  await client.create(livePath, NOTHING, 'ephemeral');
  for (const volume of volumes) {
    await claimName(client, root, volume, gatewayUuid);
    await own(options, volume);
  }
  const { stat } = await client.exists(livePath);
  if (stat === null) throw new ZkError('session_over', 'the own node of this session is gone');
  await forgetDead(client, root, gatewayUuid);
  return { coordinatorId, base, livePath, zxid: stat.mzxid };
}

/** Tokens go on from `base`; for everybody who uses this coordinator. */
export async function raiseBase(client: ZkClient, root: string, base: bigint): Promise<void> {
  const path = `${root}/${IDENTITY}`;
  for (let tries = 0; tries < LIMITS.zookeeperSetsMax; tries += 1) {
    const { data, stat } = await client.get(path);
    const known = parseIdentity(data);
    if (known.base >= base) return;
    try {
      await client.set(path, identityData(known.coordinatorId, base), stat.version);
      return;
    } catch (thrown) {
      if (!(thrown instanceof ZkError) || thrown.failure !== 'bad_version') throw thrown;
    }
  }
  throw new ZkError('unknown', 'the base is changed by somebody else again and again');
}

interface Identity {
  readonly coordinatorId: string;
  readonly base: bigint;
}

async function identity(client: ZkClient, root: string, random: Random): Promise<Identity> {
  const path = `${root}/${IDENTITY}`;
  await make(client, path, identityData(Buffer.from(random.bytes(16)).toString('hex'), 0n));
  return parseIdentity((await client.get(path)).data);
}

function identityData(coordinatorId: string, base: bigint): Uint8Array {
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

/** The node of a volume says whose it is, once and for all. */
async function claimName(client: ZkClient, root: string, volume: string, gatewayUuid: string): Promise<void> {
  const path = `${root}/${volume}`;
  await make(client, path, Buffer.from(gatewayUuid));
  const { data, stat } = await client.get(path);
  const owner = Buffer.from(data).toString('utf8');
  if (owner === gatewayUuid) return;
  if (owner === '') {
    await client.set(path, Buffer.from(gatewayUuid), stat.version);
    return;
  }
  throw new GatewayError('volume_unavailable', {
    detail: `The volume ${volume} belongs to the gateway ${owner} at this coordinator; give the volume another name, or this gateway another lock root.`,
    retryAfterMs: 30_000,
  });
}

/** Whoever cannot make the owner node does not own the volume: an earlier session of ours may still have it for a while. */
async function own({ client, root, gatewayUuid }: RegistryOptions, volume: string): Promise<void> {
  const path = `${root}/.owners/${gatewayUuid}.${volume}`;
  try {
    await client.create(path, NOTHING, 'ephemeral');
  } catch (thrown) {
    if (!(thrown instanceof ZkError) || thrown.failure !== 'node_exists') throw thrown;
    const { stat } = await client.exists(path);
    if (isOurs(stat, client)) return;
    throw new GatewayError('coordinator_unavailable', { detail: `A gateway that lives still owns the volume ${volume}.`, retryAfterMs: 1_000 });
  }
}

function isOurs(stat: ZkStat | null, client: ZkClient): boolean {
  return stat !== null && stat.ephemeralOwner === client.session?.id;
}

/** Incarnations of this very gateway that do not live: we own its volumes now, so nobody else needs to know of them. */
async function forgetDead(client: ZkClient, root: string, gatewayUuid: string): Promise<void> {
  const { names } = await client.children(`${root}/.gateways`);
  for (const name of names) {
    const path = `${root}/.gateways/${name}`;
    try {
      const { data, stat } = await client.get(path);
      if (stat.numChildren === 0 && Buffer.from(data).toString('utf8').includes(`"gateway":"${gatewayUuid}"`))
        await client.remove(path, stat.version);
    } catch (thrown) {
      if (!(thrown instanceof ZkError) || !['no_node', 'not_empty', 'bad_version'].includes(thrown.failure)) throw thrown;
    }
  }
}

async function makePath(client: ZkClient, path: string): Promise<void> {
  const parts = path.split('/').slice(1);
  for (const [i] of parts.entries()) await make(client, `/${parts.slice(0, i + 1).join('/')}`, NOTHING);
}

async function make(client: ZkClient, path: string, data: Uint8Array): Promise<void> {
  try {
    await client.create(path, data, 'persistent');
  } catch (thrown) {
    if (!(thrown instanceof ZkError) || thrown.failure !== 'node_exists') throw thrown;
  }
}

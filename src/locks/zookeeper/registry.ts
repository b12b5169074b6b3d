import { type Random, randomName } from '../../domain/clock.ts';
import { type Identity, identityOf } from './identity.ts';
import { Incarnations, recordData } from './incarnations.ts';
import { type ZkClient, ZkError } from './zk-client.ts';
import { makePersistent } from './zk-nodes.ts';

/**
 * What a coordinator session of a gateway writes about itself before it owns anything. Every answer that is not known to be one
 * rejects; the caller tries the whole registration again.
 */
export interface RegistryOptions {
  readonly client: ZkClient;
  readonly random: Random;
  readonly root: string;
  /** From its data directory: told to whoever is refused what it owns. */
  readonly gatewayUuid: string;
}

export interface Registration extends Identity {
  /** Its name below `.gateways`. */
  readonly incarnation: string;
  /** Our own ephemeral node: a committed `set` of it is what proves the session. */
  readonly livePath: string;
  /** Of the registration: what is granted from now on has a higher number. */
  readonly zxid: bigint;
}

const NOTHING = new Uint8Array();

export async function register({ client, random, root, gatewayUuid }: RegistryOptions): Promise<Registration> {
  await makePath(client, root);
  for (const name of ['.gateways', '.owners']) await makePersistent(client, `${root}/${name}`, NOTHING);
  const identity = await identityOf(client, root, random);
  const incarnations = new Incarnations(client, root);
  const incarnation = randomName(random, 12);
  const path = `${incarnations.path}/${incarnation}`;
  await client.create(path, recordData({ gateway: gatewayUuid, volumes: [] }), 'persistent');
  const livePath = `${path}/live`;
  await client.create(livePath, NOTHING, 'ephemeral');
  const { stat } = await client.exists(livePath);
  if (stat === null) throw new ZkError('session_over', 'the own node of this session is gone');
  await forgetDead(incarnations);
  return { ...identity, incarnation, livePath, zxid: stat.mzxid };
}

/** Those that have nothing anywhere any more. One that is only just being born makes its registration again. */
async function forgetDead(incarnations: Incarnations): Promise<void> {
  for (const { name, lives, volumes } of await incarnations.all())
    if (!lives && volumes.length === 0) await incarnations.change(name, (same) => same);
}

async function makePath(client: ZkClient, path: string): Promise<void> {
  const parts = path.split('/').slice(1);
  for (const [i] of parts.entries()) await makePersistent(client, `/${parts.slice(0, i + 1).join('/')}`, NOTHING);
}

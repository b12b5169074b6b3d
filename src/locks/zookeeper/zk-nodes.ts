import { type ZkClient, ZkError, type ZkFailure } from './zk-client.ts';

/** Small things that every room of the recipe does with nodes. */

export function failedWith(thrown: unknown, ...failures: readonly ZkFailure[]): boolean {
  return thrown instanceof ZkError && failures.includes(thrown.failure);
}

/** Made by somebody else meanwhile is as good (trap T16). */
export async function makePersistent(client: ZkClient, path: string, data: Uint8Array): Promise<void> {
  try {
    await client.create(path, data, 'persistent');
  } catch (thrown) {
    if (!failedWith(thrown, 'node_exists')) throw thrown;
  }
}

/** `null` when it is not there; any other error stays one (trap T12). */
export async function orNoNode<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (thrown) {
    if (failedWith(thrown, 'no_node')) return null;
    throw thrown;
  }
}

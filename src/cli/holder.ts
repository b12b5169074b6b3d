import { FencegateError, isFencegateError } from '../client/errors.ts';
import type { FencegateClient } from '../client/fencegate-client.ts';

/** Who asks has waited already. */
const ASK_MS_MAX = 1_000;
const OTHERS_MAX = 10;

/**
 * Runs `work`; where it does not get the lock, its error also tells who holds that, and since when, or which node of another program
 * stands there, if anybody does and the gateway says so.
 * Rejects as `work` does.
 */
export async function namingHolder<T>(client: FencegateClient, resource: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (!isFencegateError(thrown, 'lock_not_acquired')) throw thrown;
    throw new FencegateError(thrown.code, {
      detail: thrown.message,
      status: thrown.status,
      requestId: thrown.requestId,
      members: { ...thrown.members, ...(await holderOf(client, resource)) },
      cause: thrown,
    });
  }
}

/** Empty when nobody holds it any more, and when it cannot be told: that must not hide why the question came up. */
async function holderOf(client: FencegateClient, resource: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    const { holders, foreign_contenders: others } = await client.lock(resource, { signal: AbortSignal.timeout(ASK_MS_MAX) });
    const [holder] = holders;
    if (holder === undefined) return others.length === 0 ? {} : { foreign_contenders: others.slice(0, OTHERS_MAX) };
    return { holder_client_id: holder.client_id ?? 'somebody without a label', holder_since: holder.since };
  } catch {
    return {};
  }
}

import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { ZkServer } from './connect-string.ts';

/**
 * The native client gets addresses only: it would look names up on its own event loop, and swallow the failure (traps N6, N7). Those of
 * IPv6 without brackets, which it would hand on to the system: what follows the last colon is the port for it. In an order of chance, so that not
 * everybody goes to the first server; the one that is named last, because a session that comes from there may have left it for a reason.
 * @param order `random`: from 0 to 1, below it.
 */
export async function resolveServers(
  servers: readonly ZkServer[],
  { random, last }: { readonly random: () => number; readonly last: string | null },
): Promise<{ readonly addresses: string[]; readonly problems: string[] }> {
  const addresses = new Set<string>();
  const problems: string[] = [];
  const found = await Promise.allSettled(servers.map(({ host }) => (isIP(host) === 0 ? lookup(host, { all: true }) : [{ address: host }])));
  for (const [index, { host, port }] of servers.entries()) {
    const result = found[index];
    if (result?.status === 'fulfilled') for (const { address } of result.value) addresses.add(`${address}:${port}`);
    else problems.push(`${host} cannot be resolved (${codeOf(result?.reason)})`);
  }
  const placed = [...addresses].map((address) => ({ address, place: address === last ? 1 : random() }));
  return { addresses: placed.sort((a, b) => a.place - b.place).map(({ address }) => address), problems };
}

function codeOf(reason: unknown): string {
  return reason instanceof Error && 'code' in reason ? String(reason.code) : String(reason);
}

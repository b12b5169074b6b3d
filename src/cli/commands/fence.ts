import type { CommandContext } from '../command-context.ts';
import { type ConnectionFlags, withClient, withOrder } from '../connection.ts';
import { EXIT } from '../exit-codes.ts';
import { outJson } from '../screen.ts';
import { outFacts } from '../table.ts';
import { UsageError } from '../usage-error.ts';

interface JsonFlags extends ConnectionFlags {
  readonly json?: boolean;
}

/** An order of an administrator. `offline`: carried out in the data directory of a gateway that does not run. */
export interface OrderFlags extends JsonFlags {
  readonly reason: string;
  readonly offline?: boolean;
}

export function showFence(context: CommandContext, resource: string, flags: JsonFlags): Promise<number> {
  return withClient(context, flags, async (client, signal) => {
    const fence = await client.administration.fence(resource, { signal });
    if (flags.json === true) outJson(context.screen, fence);
    else {
      outFacts(context.screen, {
        resource: fence.resource,
        'high-water mark': fence.high_water_mark,
        'raised by lease': fence.lease_ref,
        'of principal': fence.principal,
        'ever leased by name': fence.ever_named ? 'yes' : 'no',
        'floor of the volume': fence.floor,
      });
    }
    return EXIT.ok;
  });
}

export async function rebaseFences(context: CommandContext, flags: OrderFlags): Promise<number> {
  return withGateway(context, flags, null, async (own, configured) =>
    withOrder(own, flags, async (client, signal) => {
      const { base, volumes: all } = await client.administration.rebase({ reason: flags.reason, signal });
      const volumes = configured === null ? all : all.filter((name) => configured.includes(name));
      if (flags.json === true) outJson(context.screen, { base, volumes });
      else context.screen.out(`tokens go on above ${base}; every earlier one is void on ${volumes.join(', ')}\n`);
      return EXIT.ok;
    }),
  );
}

export async function adoptVolume(context: CommandContext, volume: string, flags: OrderFlags): Promise<number> {
  return withGateway(context, flags, volume, async (own) =>
    withOrder(own, flags, async (client, signal) => {
      const adopted = await client.administration.adopt(volume, { reason: flags.reason, signal });
      if (flags.json === true) outJson(context.screen, adopted);
      else context.screen.out(`${adopted.name} is ${adopted.state}, fence level ${adopted.fence_level}\n`);
      return EXIT.ok;
    }),
  );
}

/** The context that reaches the gateway: the running one, or one that exists only for this order, of one volume or of all; `configured`: the volumes of that one. */
async function withGateway(
  context: CommandContext,
  { offline, gateway }: OrderFlags,
  volume: string | null,
  work: (own: CommandContext, configured: readonly string[] | null) => Promise<number>,
): Promise<number> {
  if (offline !== true) return work(context, null);
  if (gateway !== undefined) throw new UsageError('--offline asks no gateway: leave --gateway away');
  const { withOfflineGateway } = await import('../offline-gateway.ts');
  return withOfflineGateway(context, { volume }, work);
}

import { get } from './http-client.ts';
import { until } from './until.ts';

/** Resolves once a gateway serves every volume. One that hangs, that is slow to start, or is still in use by another process opens by itself later. */
export async function volumesOpen(url: string): Promise<void> {
  await until(async () => {
    const { volumes } = (await get(url, '/readyz')).json as { readonly volumes: readonly { readonly state: string }[] };
    return volumes.every(({ state }) => state === 'open') ? true : null;
  });
}

import { readFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import type { FencegateClientOptions } from '../client/client-options.ts';
import { isFencegateError } from '../client/errors.ts';
import type { FencegateClient } from '../client/fencegate-client.ts';
import type { ClientEnvironment } from '../client/from-environment.ts';
import type { CommandContext } from './command-context.ts';
import { interruptible } from './interruptible.ts';
import { OrderIds } from './order-ids.ts';
import { UsageError } from './usage-error.ts';

/** The flags of every command that talks to a gateway. */
export interface ConnectionFlags {
  readonly gateway?: string;
  readonly authTokenFile?: string;
  readonly clientId?: string;
}

/** As the SDK's; the child of `exec` gets it by name. */
const URL_DEFAULT = 'http://127.0.0.1:8080';
const CLOSE_MS_MAX = 1_000;
/** Enough to send it once. */
const CLOSE_UNREACHED_MS_MAX = 50;

/**
 * The environment that the client is set up from, with the flags in front. The bearer token comes from a file or the environment, never from
 * an argument: everybody on the machine can read those. Throws `UsageError`.
 */
export function clientEnvironment(environment: ClientEnvironment, { gateway, authTokenFile }: ConnectionFlags): ClientEnvironment {
  const named = gateway ?? environment['FENCEGATE_URL'] ?? '';
  const url = named === '' ? URL_DEFAULT : named;
  if (!isHttpUrl(url)) throw new UsageError(`${url} is no URL; write --gateway ${URL_DEFAULT}`);
  return { ...environment, FENCEGATE_URL: url, ...(authTokenFile === undefined ? {} : { FENCEGATE_AUTH_TOKEN: tokenIn(authTokenFile) }) };
}

/** Who people see holding a lease: `user@host`, unless `--client-id` says otherwise. It goes into a header, which cannot hold every letter. */
export function clientLabel({ clientId }: ConnectionFlags): string {
  return clientId ?? `${userName()}${hostname()}`.replace(/[^\x20-\x7e]/g, '?');
}

function userName(): string {
  try {
    return `${userInfo().username}@`;
  } catch {
    // A user without an entry in the list of users, as in containers.
    return '';
  }
}

type Work<T> = (client: FencegateClient, signal: AbortSignal) => Promise<T>;

/**
 * Runs `work` with a client, which is closed afterwards. `signal` aborts at SIGINT or SIGTERM. Rejects with what `work` throws, `UsageError`, or
 * `Interrupted`.
 */
export function withClient<T>({ environment }: CommandContext, flags: ConnectionFlags, work: Work<T>): Promise<T> {
  return withOpenClient(() => openClient(environment, flags), work);
}

/** The same for what changes something there: its orders have one request id, by which an `Interrupted` tells how to find what became of them. */
export async function withOrder<T>({ environment }: CommandContext, flags: ConnectionFlags, work: Work<T>): Promise<T> {
  const orders = new OrderIds();
  try {
    return await withOpenClient(() => openClient(environment, flags, { requestId: orders.next }), work);
  } catch (thrown) {
    throw orders.interrupted(thrown);
  }
}

async function withOpenClient<T>(open: () => Promise<FencegateClient>, work: Work<T>): Promise<T> {
  const client = await open();
  let reached = true;
  try {
    return await interruptible((signal) => work(client, signal));
  } catch (thrown) {
    reached = !isFencegateError(thrown, 'gateway_unreachable');
    throw thrown;
  } finally {
    await closeSoon(client, reached);
  }
}

/** Throws `UsageError`. */
export async function openClient(
  environment: ClientEnvironment,
  flags: ConnectionFlags,
  options: Pick<FencegateClientOptions, 'onEvent' | 'requestId'> = {},
): Promise<FencegateClient> {
  const { clientFromEnvironment } = await import('../client/from-environment.ts');
  try {
    return clientFromEnvironment(clientEnvironment(environment, flags), { clientId: clientLabel(flags), ...options });
  } catch (thrown) {
    throw thrown instanceof TypeError ? new UsageError(thrown.message) : thrown;
  }
}

/** What the gateway is not told ends by itself there; a gateway that is gone must not hold the command up. `reached`: as far as is known. */
export async function closeSoon(client: FencegateClient, reached = true): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, reached ? CLOSE_MS_MAX : CLOSE_UNREACHED_MS_MAX);
  });
  await Promise.race([client.close().catch(() => undefined), late]);
  clearTimeout(timer);
}

function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

function tokenIn(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (thrown) {
    const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : 'unknown reason';
    throw new UsageError(`the file ${file} of --auth-token-file cannot be read (${code})`);
  }
}

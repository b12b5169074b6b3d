import { readFileSync } from 'node:fs';
import type { FencegateClientOptions } from './client-options.ts';
import { FencegateClient } from './fencegate-client.ts';
import type { ClientTls } from './own-fetch.ts';

/** The variables that clients know, as the environment of a process has them. */
export type ClientEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * A client set up by `FENCEGATE_URL` and `FENCEGATE_AUTH_TOKEN` and, for an `https` URL, by `FENCEGATE_CA_FILE`, `FENCEGATE_CERT_FILE` and
 * `FENCEGATE_KEY_FILE` (PEM). Inside `fencegate exec` (`FENCEGATE_RESOURCE`, `FENCEGATE_LEASE_ID`,
 * `FENCEGATE_FENCING_TOKEN`) its writes to that resource go under the lease of the command, and `lease` and `withLease` give that one out.
 * `options` go before the environment. Throws `TypeError` when only some of what belongs together is set,
 * or an error of the file system.
 *
 * @example
 * const client = clientFromEnvironment(environment); // usually the one of the process
 * await client.put('ledger/q3.csv', bytes);
 */
export function clientFromEnvironment(environment: ClientEnvironment, options: FencegateClientOptions = {}): FencegateClient {
  const { FENCEGATE_URL: url, FENCEGATE_AUTH_TOKEN: authToken } = environment;
  const { FENCEGATE_RESOURCE: resource, FENCEGATE_LEASE_ID: leaseId, FENCEGATE_FENCING_TOKEN: fencingToken } = environment;
  const set = [resource, leaseId, fencingToken].filter(isSet).length;
  if (set !== 0 && set !== 3) throw new TypeError('FENCEGATE_RESOURCE, FENCEGATE_LEASE_ID and FENCEGATE_FENCING_TOKEN belong together');
  return new FencegateClient({
    ...(isSet(url) ? { url } : {}),
    ...(isSet(authToken) ? { authToken } : {}),
    ...(isSet(url) && url.startsWith('https:') ? tlsOf(environment) : {}),
    ...(isSet(resource) && isSet(leaseId) && isSet(fencingToken) ? { inheritedLease: { resource, leaseId, fencingToken } } : {}),
    ...options,
  });
}

function tlsOf({ FENCEGATE_CA_FILE: ca, FENCEGATE_CERT_FILE: cert, FENCEGATE_KEY_FILE: key }: ClientEnvironment): { readonly tls?: ClientTls } {
  if (isSet(cert) !== isSet(key)) throw new TypeError('FENCEGATE_CERT_FILE and FENCEGATE_KEY_FILE belong together');
  const files = Object.entries({ ca, cert, key }).flatMap(([name, file]) => (isSet(file) ? [[name, readFileSync(file, 'utf8')]] : []));
  return files.length === 0 ? {} : { tls: Object.fromEntries(files) as ClientTls };
}

/** A script that lost a variable passes an empty one on. */
function isSet(value: string | undefined): value is string {
  return value !== undefined && value !== '';
}

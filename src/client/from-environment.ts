import { readFileSync } from 'node:fs';
import type { FencegateClientOptions } from './client-options.ts';
import { FencegateClient } from './fencegate-client.ts';
import type { ClientTls } from './own-fetch.ts';
import { tlsProblem } from './tls-material.ts';

/** The variables that clients know, as the environment of a process has them. */
export type ClientEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * A client set up by `FENCEGATE_URL` and `FENCEGATE_AUTH_TOKEN` and, for an `https` URL, by `FENCEGATE_CA_FILE`, `FENCEGATE_CERT_FILE` and
 * `FENCEGATE_KEY_FILE` (PEM). Inside `fencegate exec` (`FENCEGATE_RESOURCE`, `FENCEGATE_LEASE_ID`,
 * `FENCEGATE_FENCING_TOKEN`) its writes to that resource go under the lease of the command, and `lease` and `withLease` give that one out.
 * `options` go before the environment. Throws `TypeError` when only some of what belongs together is set, or a file cannot be read or is
 * not what its variable says.
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

const VARIABLES = { ca: 'FENCEGATE_CA_FILE', cert: 'FENCEGATE_CERT_FILE', key: 'FENCEGATE_KEY_FILE' } as const;

function tlsOf(environment: ClientEnvironment): { readonly tls?: ClientTls } {
  const { FENCEGATE_CERT_FILE: cert, FENCEGATE_KEY_FILE: key } = environment;
  if (isSet(cert) !== isSet(key)) throw new TypeError('FENCEGATE_CERT_FILE and FENCEGATE_KEY_FILE belong together');
  const files = Object.entries(VARIABLES).flatMap(([part, variable]): [string, string][] => {
    const file = environment[variable];
    return isSet(file) ? [[part, textOf(variable, file)]] : [];
  });
  if (files.length === 0) return {};
  const tls = Object.fromEntries(files) as ClientTls;
  const named = (variable: string): string => `${variable}: ${environment[variable]}`;
  const problem = tlsProblem(tls, { ca: named(VARIABLES.ca), cert: named(VARIABLES.cert), key: named(VARIABLES.key) });
  if (problem !== null) throw new TypeError(problem);
  return { tls };
}

function textOf(variable: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown reason';
    throw new TypeError(`${variable}: ${file} cannot be read (${code})`, { cause });
  }
}

/** A script that lost a variable passes an empty one on. */
function isSet(value: string | undefined): value is string {
  return value !== undefined && value !== '';
}

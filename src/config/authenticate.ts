import { createHash, timingSafeEqual } from 'node:crypto';
import { refuse } from '../domain/errors.ts';
import type { Principal } from '../domain/principal.ts';
import { type KnownPrincipal, readAuthFile } from './auth-file.ts';

export interface Credentials {
  /** The `Authorization` header as sent. */
  readonly authorization: string | undefined;
  /** Subject common name of a client certificate that the TLS layer verified; `null` without one. */
  readonly certificateName: string | null;
}

export interface Authenticator {
  /** False: everybody is the one anonymous principal (a loopback gateway without authentication). */
  readonly required: boolean;
  /**
   * A bearer token that was sent decides; without one, the client certificate does. Throws `unauthenticated`, always with the
   * same words: an answer does not tell an unknown name from a wrong token.
   */
  authenticate(credentials: Credentials): Principal;
  /** Reads the file again (SIGHUP). A bad new file throws `ConfigError` and changes nothing: the principals in force stay. */
  reload(): { readonly principals: number };
}

/** Whoever asks a gateway without authentication. It listens on loopback, or was told to be insecure. */
const ANONYMOUS: Principal = {
  name: 'anonymous',
  roles: new Set(['reader', 'writer', 'auditor', 'admin'] as const),
  scopes: [],
  authenticated: false,
};

/** @param authFile `null`: no authentication. Throws `ConfigError` when the file is bad. */
export function createAuthenticator(authFile: string | null): Authenticator {
  if (authFile === null) return { required: false, authenticate: () => ANONYMOUS, reload: () => ({ principals: 0 }) };
  let known = readAuthFile(authFile);
  return {
    required: true,
    authenticate: (credentials) => {
      const principal =
        credentials.authorization === undefined ? byCertificate(known, credentials.certificateName) : byToken(known, credentials.authorization);
      if (principal === null) throw refuse('unauthenticated', 'This gateway needs a valid bearer token or client certificate.');
      return principal;
    },
    reload: () => {
      known = readAuthFile(authFile);
      return { principals: known.length };
    },
  };
}

const BEARER = /^Bearer +([A-Za-z0-9._~+/-]+=*) *$/i;

/** Compares with every principal, so that the time taken tells neither which one it was nor how near a guess came. */
function byToken(known: readonly KnownPrincipal[], authorization: string): Principal | null {
  const token = BEARER.exec(authorization)?.[1];
  if (token === undefined) return null;
  const sha256 = createHash('sha256').update(token).digest();
  let found: Principal | null = null;
  for (const { principal, tokenSha256 } of known) {
    if (tokenSha256 !== null && timingSafeEqual(tokenSha256, sha256)) found = principal;
  }
  return found;
}

function byCertificate(known: readonly KnownPrincipal[], name: string | null): Principal | null {
  return name === null ? null : (known.find((candidate) => candidate.principal.name === name)?.principal ?? null);
}

/** Who asks: the authenticated principal, or nobody on a loopback gateway without authentication. */

export type Role = 'reader' | 'writer' | 'auditor' | 'admin';

export interface Principal {
  readonly name: string;
  readonly roles: ReadonlySet<Role>;
  /** Path scopes, `volume/prefix`; empty means everything. */
  readonly scopes: readonly string[];
  /** False on a gateway without authentication: everybody is this one. */
  readonly authenticated: boolean;
}

/** Everything about the caller that decisions and audit records need. */
export interface Caller {
  readonly principal: Principal;
  /** A label chosen by the client; names nobody. `null` when not sent. */
  readonly clientId: string | null;
  /** `null` when the connection was gone before anybody asked. */
  readonly remoteAddress: string | null;
  readonly requestId: string;
}

/** True when the caller may be told about marks of leases it does not own. */
export function seesEverything(principal: Principal): boolean {
  return !principal.authenticated || principal.roles.has('admin');
}

import { type GatewayError, refuse } from './errors.ts';
import type { Principal, Role } from './principal.ts';

/** What a route asks of its caller (the table of roles in the contract). Pure: no request, no clock. */
export type Access =
  /** No identity at all: health, pages, the API description. */
  | 'open'
  /** Any principal: metrics, the list of volumes. */
  | 'any'
  | 'read_files'
  | 'read_locks'
  /** Writes, leases, sessions, operations. */
  | 'write'
  | 'read_operations'
  | 'audit'
  | 'admin';

const ROLES: Readonly<Record<Exclude<Access, 'open' | 'any'>, readonly Role[]>> = {
  read_files: ['reader', 'writer'],
  read_locks: ['reader', 'writer', 'auditor'],
  write: ['writer'],
  read_operations: ['writer', 'auditor'],
  audit: ['auditor'],
  admin: [],
};

/** Without authentication everybody may do everything; an administrator always may. */
function isSovereign(principal: Principal): boolean {
  return !principal.authenticated || principal.roles.has('admin');
}

/** Judges the role. @returns the refusal, or `null`. */
export function roleRefusal(principal: Principal, access: Access): GatewayError | null {
  if (access === 'open' || access === 'any' || isSovereign(principal)) return null;
  if (ROLES[access].some((role) => principal.roles.has(role))) return null;
  const asked = ROLES[access].length === 0 ? 'admin' : ROLES[access].join(' or ');
  return refuse('forbidden', `This needs the role ${asked}.`);
}

/** Whether `name` (`volume/path`, or `volume` for its root) lies in the scopes of the principal; whole segments, so `a/b` does not open `a/bc`. */
export function inScope(principal: Principal, name: string): boolean {
  if (isSovereign(principal) || principal.scopes.length === 0) return true;
  return principal.scopes.some((scope) => {
    const prefix = scope.endsWith('/') ? scope.slice(0, -1) : scope;
    return name === prefix || name.startsWith(`${prefix}/`);
  });
}

/** @returns the refusal, or `null`. Says nothing about what is outside the scope. */
export function scopeRefusal(principal: Principal, name: string): GatewayError | null {
  return inScope(principal, name) ? null : refuse('forbidden', 'This is outside the path scope of the principal.');
}

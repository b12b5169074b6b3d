import type { FastifyRequest } from 'fastify';
import type { Access } from '../domain/access.ts';
import type { AuditAction } from '../domain/audit-record.ts';
import type { GatewayError } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Caller, Principal } from '../domain/principal.ts';
import { labelValue } from './header-values.ts';

/** What a request has gathered on its way in. */
export interface RequestState {
  readonly startedMs: number;
  /** Unset until authentication. */
  principal: Principal | null;
  /** What the request is about, once named; for the audit record of a refusal. */
  subject: { readonly volume: string; readonly path: string | null } | null;
  /** The write gateway or the lock service has it, and audits its refusals itself from here on. */
  handedOver: boolean;
  /** A refusal for the caller's role that waits until the body has named what it is about; it stands whatever the body is. */
  roleRefusal: GatewayError | null;
  /** SHA-256 of a JSON body, lower-case hex: part of an idempotency fingerprint. */
  bodyHash: string | null;
  /** `Content-Type` as sent; the framework sees a plain one for bodies that may have any. */
  contentType: string | undefined;
}

declare module 'fastify' {
  interface FastifyRequest {
    state: RequestState;
  }
  interface FastifyInstance {
    /** The event loop is so late that new work is refused (`overloaded`). */
    isBehind(): boolean;
  }
  interface FastifyContextConfig {
    /** What the route asks of its caller; `any` when not said. */
    access?: Access;
    /** Refused requests of this route are audited under this action. */
    action?: AuditAction;
    /** The members of a JSON body that name the resource, the first that is there: for the record of a refusal that comes before the route. */
    namedBy?: readonly string[];
    /** Refused while the gateway is draining. */
    newWork?: boolean;
    /** The body is not read by the framework: it streams to the write gateway. */
    streams?: boolean;
    /** For the API document only. */
    documentedHeaders?: object;
    /** Media types of a streamed body, for the API document only. */
    bodyTypes?: readonly string[];
    /** Further media types of a 200, for the API document only. */
    exports?: Readonly<Record<string, object>>;
  }
}

export function newState(startedMs: number): RequestState {
  return { startedMs, principal: null, subject: null, handedOver: false, roleRefusal: null, bodyHash: null, contentType: undefined };
}

/** The principal of a request whose route asks for one. */
export function principalOf(request: FastifyRequest): Principal {
  const { principal } = request.state;
  if (principal === null) throw new Error('the route has no identity: its access is open');
  return principal;
}

/** Throws `invalid_request` for a label that is not plain text. `clientId` of a JSON body goes before the header's. */
export function callerOf(request: FastifyRequest, clientId: string | null = null): Caller {
  return {
    principal: principalOf(request),
    clientId: clientId ?? labelValue(request.raw, 'x-client-id', LIMITS.clientIdBytesMax),
    remoteAddress: addressOf(request),
    requestId: request.id,
  };
}

/** Where it came from. A connection that was reset has no address any more, whatever the type says. */
export function addressOf(request: FastifyRequest): string | null {
  const address: string | undefined = request.ip;
  return address ?? null;
}

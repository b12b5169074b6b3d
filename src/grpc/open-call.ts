import type { ServerUnaryCall } from '@grpc/grpc-js';
import type { Access } from '../domain/access.ts';
import { scopeRefusal } from '../domain/access.ts';
import { refuse } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import { type NameUse, resourceFromText } from '../domain/named-resource.ts';
import type { Caller, Principal } from '../domain/principal.ts';
import type { Resource } from '../domain/resource.ts';
import type { Volumes } from '../domain/volume.ts';

/** What the library shows of every kind of call. */
export interface SurfaceCall
  extends Pick<ServerUnaryCall<unknown, unknown>, 'cancelled' | 'metadata' | 'getPeer' | 'getDeadline' | 'getAuthContext'> {
  on(event: 'cancelled', listener: () => void): unknown;
}

/** What a method asks of its caller. */
export interface MethodRules {
  readonly name: string;
  readonly access: Access;
  /** Its refusals are audited, as `lease_refuse`. */
  readonly audited: boolean;
  /** Refused while the gateway is draining, and when too many calls are open. */
  readonly newWork: boolean;
  /** Never refused for load: that would cost holders their leases, and make the load worse. */
  readonly keepsLease: boolean;
}

/** Addresses below which names are accepted, too: what looks like a node of the lock tree. */
const LOCK_ROOT = '/locks/';

/** `volume/path` of a name as it was sent. */
export function plainName(resourcePath: string): string {
  return resourcePath.startsWith(LOCK_ROOT) ? resourcePath.slice(LOCK_ROOT.length) : resourcePath;
}

/** One call and what it has gathered on its way in. */
export class OpenCall {
  readonly rules: MethodRules;
  readonly requestId: string;
  readonly remoteAddress: string | null;
  readonly startedMs: number;
  readonly #volumes: Volumes;
  readonly #gone = new AbortController();
  principal: Principal | null = null;
  clientId: string | null = null;
  /** What the call is about, once named; for the audit record of a refusal. */
  subject: { readonly volume: string; readonly path: string } | null = null;
  presentedToken: FencingToken | null = null;
  /** Called when the answer did not get to the client; `null`: it may be lost. */
  undelivered: (() => void) | null = null;
  /** The lock service has it, and audits its refusals itself from here on. */
  handedOver = false;

  constructor(call: SurfaceCall, parts: { rules: MethodRules; requestId: string; startedMs: number; volumes: Volumes }) {
    this.rules = parts.rules;
    this.requestId = parts.requestId;
    this.startedMs = parts.startedMs;
    this.#volumes = parts.volumes;
    this.remoteAddress = addressOf(call.getPeer());
    call.on('cancelled', () => this.abort(refuse('incomplete_body', 'The client went away before its answer.')));
  }

  /** The client's cancellation, its deadline, or the end of draining. Its reason is a `GatewayError`. */
  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  abort(reason: unknown): void {
    this.#gone.abort(reason);
  }

  /** Everything about the caller that decisions and records need. `clientId` of the message goes before that of the metadata. */
  caller(clientId: string | null = null): Caller {
    if (this.principal === null) throw new Error('the call was not admitted');
    this.clientId = clientId ?? this.clientId;
    return { principal: this.principal, clientId: this.clientId, remoteAddress: this.remoteAddress, requestId: this.requestId };
  }

  /** The resource that a message names, in the scope of the caller. Throws `invalid_path`, `volume_not_found`, `not_found`, `forbidden`. */
  resource(resourcePath: string, use: NameUse): Resource {
    const resource = resourceFromText(this.#volumes, plainName(resourcePath), use);
    this.subject = { volume: resource.volume, path: resource.path };
    const refusal = scopeRefusal(this.caller().principal, resource.name);
    if (refusal !== null) throw refusal;
    return resource;
  }
}

const PORT = /:\d+$/;

/** `address:port` without the port; `null` for a connection that was reset. */
function addressOf(peer: string): string | null {
  return peer === 'unknown' ? null : peer.replace(PORT, '');
}

import { Metadata, type ServerUnaryCall, type sendUnaryData, status } from '@grpc/grpc-js';
import { roleRefusal } from '../domain/access.ts';
import { randomName } from '../domain/clock.ts';
import { asGatewayError, type GatewayError, refuse } from '../domain/errors.ts';
import { subjectFromText } from '../domain/named-resource.ts';
import { authorizationOf, recordedClientId, sentClientId, sentRequestId } from './call-metadata.ts';
import type { Contract } from './contract.ts';
import type { Deliveries } from './deliveries.ts';
import { type ErrorStatus, errorStatus, statusName } from './error-status.ts';
import type { GrpcDeps } from './grpc-deps.ts';
import { type MethodRules, OpenCall, plainName, type SurfaceCall } from './open-call.ts';
import type { OpenCalls } from './open-calls.ts';
import type { RateLimit } from './rate-limit.ts';
import { recordRefusal } from './refusal-record.ts';

/** A stream of answers, with or without one of requests. */
export interface AnswerStream extends SurfaceCall {
  end(): unknown;
  emit(event: 'error', end: ErrorStatus): boolean;
}

/** What a request says of itself, for the record of an early refusal; empty where it says nothing. */
export interface Named {
  readonly resourcePath: string;
  readonly clientId: string;
}

export interface CallsParts {
  readonly deps: GrpcDeps;
  readonly contract: Contract;
  readonly open: OpenCalls;
  readonly deliveries: Deliveries;
  readonly rate: RateLimit;
}

const REQUEST_ID_BYTES = 12;

/** What every call has in common: who it is, whether it may, what it is refused with, and one line in the log. */
export class Calls {
  readonly #parts: CallsParts;

  constructor(parts: CallsParts) {
    this.#parts = parts;
  }

  /** @param work rejects with the refusal. */
  unary<Request, Answer>(
    rules: MethodRules,
    named: (request: Request) => Named,
    work: (request: Request, call: OpenCall, wire: SurfaceCall) => Promise<Answer>,
  ): (wire: ServerUnaryCall<Request, Answer>, callback: sendUnaryData<Answer>) => void {
    return (wire, callback) => {
      const call = this.#arrived(wire, rules);
      const done = this.#parts.open.begin(call, 'call');
      const answered = this.#guarded(wire, call, named(wire.request), () => work(wire.request, call, wire));
      const trailer = new Metadata();
      trailer.set('x-request-id', call.requestId);
      const answer = (end: Answer | Refused): void => {
        if (call.undelivered !== null) this.#parts.deliveries.expect(wire.metadata, call.undelivered);
        if (end instanceof Refused) callback(end.status);
        else callback(null, end, trailer);
      };
      void answered.then(answer).finally(done);
    };
  }

  /** @param work resolves when the stream is to end, rejects with what it is refused or ended with. */
  stream<Wire extends AnswerStream>(
    rules: MethodRules,
    named: (wire: Wire) => Named,
    work: (wire: Wire, call: OpenCall) => Promise<void>,
  ): (wire: Wire) => void {
    return (wire) => {
      const call = this.#arrived(wire, rules);
      const done = this.#parts.open.begin(call, 'stream');
      const answered = this.#guarded(wire, call, named(wire), () => work(wire, call));
      // This is how the library is told of the status that a stream ends with.
      void answered.then((end) => (end instanceof Refused ? wire.emit('error', end.status) : wire.end())).finally(done);
    };
  }

  #arrived(wire: SurfaceCall, rules: MethodRules): OpenCall {
    const { clock, random, volumes } = this.#parts.deps;
    const requestId = sentRequestId(wire.metadata) ?? `req_${randomName(random, REQUEST_ID_BYTES)}`;
    return new OpenCall(wire, { rules, requestId, startedMs: clock.monotonicMs(), volumes });
  }

  /** Never rejects. */
  async #guarded<Answer>(wire: SurfaceCall, call: OpenCall, named: Named, work: () => Promise<Answer>): Promise<Answer | Refused> {
    try {
      this.#admit(wire, call, named);
      const answer = await work();
      this.#over(call, status.OK);
      return answer;
    } catch (thrown) {
      // Whoever went away is told nothing, and is not refused either.
      if (wire.cancelled) {
        this.#over(call, status.CANCELLED);
        return new Refused(this.#status(asGatewayError(thrown), call));
      }
      const error = await this.#recorded(call, asGatewayError(thrown));
      if (error.code === 'internal') {
        this.#parts.deps.log.error({ err: error.cause ?? error, request_id: call.requestId, method: call.rules.name }, 'call failed');
      }
      const refused = this.#status(error, call);
      this.#over(call, refused.code);
      return new Refused(refused);
    }
  }

  /** In the order of HTTP requests: draining, overload, identity, role, rate. */
  #admit(wire: SurfaceCall, call: OpenCall, { resourcePath, clientId }: Named): void {
    const { deps, open, rate } = this.#parts;
    const { rules } = call;
    if (rules.newWork && deps.isDraining()) throw refuse('draining', 'The gateway is stopping and takes no new leases.');
    if (rules.newWork) open.assertRoom();
    if (!rules.keepsLease && deps.isBehind()) throw refuse('overloaded', 'The gateway is behind with its work.');
    const certificateName = wire.getAuthContext().sslPeerCertificate?.subject?.CN;
    call.principal = deps.authenticate({
      authorization: authorizationOf(wire.metadata),
      certificateName: typeof certificateName === 'string' ? certificateName : null,
    });
    const refusal = roleRefusal(call.principal, rules.access);
    if (refusal !== null) {
      call.subject = subjectFromText(plainName(resourcePath));
      call.clientId = recordedClientId(clientId, wire.metadata);
      throw refusal;
    }
    rate.admit(call.principal, call.remoteAddress);
    call.clientId = sentClientId(wire.metadata);
  }

  /** When the refusal cannot be made durable, that is what the client learns (fail closed); nothing was changed either way. */
  async #recorded(call: OpenCall, error: GatewayError): Promise<GatewayError> {
    try {
      await recordRefusal(this.#parts.deps, call, error);
      return error;
    } catch (thrown) {
      return asGatewayError(thrown);
    }
  }

  #status(error: GatewayError, { requestId }: OpenCall): ErrorStatus {
    const { contract, deps } = this.#parts;
    return errorStatus(contract, error, { requestId, retryAfterMs: error.retryAfterMs ?? deps.retryAfterMsOf(error.code) });
  }

  /** One line in the log, and one observation. */
  #over(call: OpenCall, code: status): void {
    const { log, clock, observe } = this.#parts.deps;
    const durationMs = clock.monotonicMs() - call.startedMs;
    observe(call.rules.name, statusName(code), durationMs / 1_000);
    const line = {
      request_id: call.requestId,
      method: call.rules.name,
      status: statusName(code),
      duration_ms: Math.round(durationMs),
      principal: call.principal?.name ?? null,
      remote_address: call.remoteAddress,
      volume: call.subject?.volume ?? null,
    };
    if (code === status.INTERNAL || code === status.UNAVAILABLE) log.warn(line, 'call');
    else log.info(line, 'call');
  }
}

/** The end of a call that was not answered. */
class Refused {
  readonly status: ErrorStatus;

  constructor(sent: ErrorStatus) {
    this.status = sent;
  }
}

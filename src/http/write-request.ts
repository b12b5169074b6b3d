/** What the routes that write have in common: name, check the scope, read the envelope, hand over, answer. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { scopeRefusal } from '../domain/access.ts';
import { refuse } from '../domain/errors.ts';
import { type NameUse, resourceFromText, resourceNamed } from '../domain/named-resource.ts';
import type { NameForm, Resource } from '../domain/resource.ts';
import type { WriteAnswer, WriteEnvelope } from '../domain/write.ts';
import { assertIdentityCoding, readEnvelope } from './envelope.ts';
import { declaredBytesOf } from './exchange.ts';
import type { HttpDeps } from './http-deps.ts';
import { RequestBody } from './request-body.ts';
import { requestSignal } from './request-signal.ts';
import { callerOf, principalOf } from './request-state.ts';
import { type NamedTarget, namedTarget } from './request-target.ts';

/** Throws `forbidden` for a name outside the principal's scopes. Sets what an audit record of a refusal is about. */
function admitName(request: FastifyRequest, volume: string, path: string): void {
  request.state.subject = { volume, path };
  const refusal = scopeRefusal(principalOf(request), path === '' ? volume : `${volume}/${path}`);
  if (refusal !== null) throw refusal;
}

/** The target of a route on `{volume}/{path}`, named and in scope. */
export function targetOf(
  deps: HttpDeps,
  request: FastifyRequest,
  use: NameUse,
  form: NameForm = 'text',
): { readonly target: NamedTarget; readonly resource: Resource | null } {
  const target = namedTarget(request.originalUrl, form);
  if (target.segments.length > 0 || use === 'read') admitName(request, target.volume, target.segments.join('/'));
  if (target.segments.length === 0) {
    deps.volumes.policy(target.volume);
    admitName(request, target.volume, '');
    return { target, resource: null };
  }
  return { target, resource: resourceNamed(deps.volumes, target.volume, target.segments, use) };
}

/** The same where only a resource will do. */
export function resourceOfRoute(deps: HttpDeps, request: FastifyRequest, use: NameUse, form: NameForm = 'text'): Resource {
  const { resource } = targetOf(deps, request, use, form);
  if (resource === null) throw refuse('invalid_path', 'The root of a volume cannot be written, leased or removed.');
  return resource;
}

/** A resource in a JSON body, in scope. */
export function resourceInBody(deps: HttpDeps, request: FastifyRequest, text: string, use: NameUse = 'write'): Resource {
  const resource = resourceFromText(deps.volumes, text, use);
  const refusal = scopeRefusal(principalOf(request), resource.name);
  request.state.subject ??= { volume: resource.volume, path: resource.path };
  if (refusal !== null) throw refusal;
  return resource;
}

/** `path` is the canonical name that an `Idempotency-Key` is scoped to. */
export function envelopeOf(deps: HttpDeps, request: FastifyRequest, reply: FastifyReply, path: string): WriteEnvelope {
  return readEnvelope({
    request: request.raw,
    caller: callerOf(request),
    signal: requestSignal(reply.raw, deps.deadline),
    startedMs: request.state.startedMs,
    method: request.method,
    path,
    bodyHash: request.state.bodyHash,
  });
}

/** A body that will stream. Throws `length_required`, `body_too_large`, `unsupported_media_type` before anything is asked for. */
export function streamedBody(deps: HttpDeps, request: FastifyRequest, reply: FastifyReply, envelope: WriteEnvelope): RequestBody {
  const { headers } = request.raw;
  assertIdentityCoding(request.raw);
  if (headers['transfer-encoding'] === undefined && declaredBytesOf(request.raw) === null) {
    throw refuse('length_required', 'The request has neither Content-Length nor chunks. To write an empty file send Content-Length: 0.');
  }
  const { bodyBytesMax, uploadIdleMs, uploadMinBytesPerSecond } = deps.settings;
  const limits = { bytesMax: bodyBytesMax, idleMs: uploadIdleMs, minBytesPerSecond: uploadMinBytesPerSecond };
  const body = new RequestBody(request.raw, reply.raw, deps.clock, limits, envelope.signal);
  body.assertDeclaredLength();
  return body;
}

/** From here on the write gateway or the lock service audits what it refuses. */
export function handOver(request: FastifyRequest): void {
  request.state.handedOver = true;
}

export function sendAnswer(reply: FastifyReply, answer: WriteAnswer): FastifyReply {
  reply.code(answer.status).headers(answer.headers);
  if (answer.replayed) reply.header('idempotency-replayed', 'true');
  return answer.body === null ? reply.send() : reply.type('application/json; charset=utf-8').send(JSON.stringify(answer.body));
}

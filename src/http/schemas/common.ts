import { type TSchema, Type } from '@sinclair/typebox';
import type { ErrorCode } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { STATUS_TABLE } from '../status.ts';

/** Pieces that all schemas share. The same objects validate requests, type the handlers, serialise answers and make the OpenAPI document. */

/** In answers a member that does not apply is `null`, never left out. */
export const nullableString = (description?: string) => Type.Unsafe<string | null>({ type: ['string', 'null'], ...said(description) });
export const nullableInteger = (description?: string) => Type.Unsafe<number | null>({ type: ['integer', 'null'], ...said(description) });
export const nullableObject = (description?: string) =>
  Type.Unsafe<Readonly<Record<string, unknown>> | null>({ type: ['object', 'null'], additionalProperties: true, ...said(description) });
/** One of a closed list, or `null`. */
export const nullableOneOf = <T extends string>(values: readonly T[], description?: string) =>
  Type.Unsafe<T | null>({ type: ['string', 'null'], enum: [...values, null], ...said(description) });
export const oneOf = <T extends string>(values: readonly T[], description?: string) =>
  Type.Union(
    values.map((value) => Type.Literal(value)),
    said(description),
  ) as unknown as ReturnType<typeof Type.Unsafe<T>>;
/** The same for answers, where it is not validated: one `enum` reads better. */
export const answerOneOf = <T extends string>(values: readonly T[], description?: string) =>
  Type.Unsafe<T>({ type: 'string', enum: [...values], ...said(description) });
export const token = (description = 'Fencing token, decimal') => Type.String({ description, examples: ['4103'] });
export const nullableToken = (description = 'Fencing token, decimal') => nullableString(description);
export const time = (description: string) => Type.String({ description: `${description}; RFC 3339 UTC` });

function said(description: string | undefined): { description?: string } {
  return description === undefined ? {} : { description };
}

/** Of routes that take no query: a parameter that is not known is refused, not passed over. */
export const NoQuery = Type.Object({}, { additionalProperties: false });
/** Refused above `max`, on every list: whoever counts on more would take a short page for the last one. */
export const Limit = (max: number, otherwise: number) =>
  Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: max,
      description: `How many in one page, at most ${max}; default ${otherwise}. next_cursor leads to the rest`,
    }),
  );
export const Cursor = Type.Optional(Type.String({ minLength: 1, maxLength: 1_024, description: 'next_cursor of the page before' }));
/** With which code, and in which words, a text that is too short or too long is refused, where that is not `invalid_request`. */
export const OF_WRONG_LENGTH = Symbol('of wrong length');
export interface WrongLength {
  readonly code: ErrorCode;
  readonly detail: string;
}
export const ResourceName = Type.String({
  minLength: 3,
  maxLength: LIMITS.volumeNameMax + 1 + LIMITS.pathBytesMax,
  [OF_WRONG_LENGTH]: {
    code: 'invalid_path',
    detail: `A resource is written volume/path, and the path has at most ${LIMITS.pathBytesMax} bytes.`,
  } satisfies WrongLength,
  description: 'volume/path, plain text',
  examples: ['ledger/2026/q3.csv'],
});
export const Reason = Type.String({ minLength: 1, maxLength: LIMITS.reasonBytesMax, description: 'Why; goes into the audit record' });

export const Problem = Type.Object(
  {
    type: Type.String({ description: '/docs/problems/{code}' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String(),
    code: Type.String(),
    request_id: Type.String(),
  },
  { title: 'Problem', description: 'RFC 9457. Some codes add members.', additionalProperties: true },
);

/** Codes that any request can meet. */
const EVERYWHERE: readonly ErrorCode[] = ['invalid_request', 'uri_too_long', 'headers_too_large', 'wrong_host', 'expectation_failed', 'internal'];
/** And any that asks for an identity. */
const IDENTIFIED: readonly ErrorCode[] = ['unauthenticated', 'forbidden', 'rate_limited', 'overloaded'];

export interface Success {
  readonly description: string;
  /** `null`: no body. */
  readonly schema: TSchema | null;
  readonly mediaType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface AnswerOptions {
  readonly open?: boolean;
}

/** The `response` part of a route's schema: each success, and one problem document per status that lists its codes. */
export function answers(
  successes: Readonly<Record<number, Success>>,
  codes: readonly ErrorCode[],
  options: AnswerOptions = {},
): Record<string, TSchema> {
  const response: Record<string, unknown> = {};
  for (const [status, success] of Object.entries(successes)) response[status] = successAnswer(success);
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of new Set([...codes, ...EVERYWHERE, ...(options.open === true ? [] : IDENTIFIED)])) {
    const { status } = STATUS_TABLE[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  for (const [status, list] of byStatus) response[String(status)] = problemAnswer(list);
  return response as Record<string, TSchema>;
}

const REQUEST_ID_HEADER = { 'X-Request-Id': { type: 'string', description: 'Names this request in logs and in the audit log' } };

function successAnswer({ description, schema, mediaType = 'application/json', headers = {} }: Success): unknown {
  const documented = { ...REQUEST_ID_HEADER, ...headerSchemas(headers) };
  if (schema === null) return { description, type: 'null', headers: documented };
  return { description, headers: documented, content: { [mediaType]: { schema } } };
}

function problemAnswer(codes: readonly ErrorCode[]): unknown {
  const first = codes[0];
  const status = first === undefined ? 0 : STATUS_TABLE[first].status;
  const late = codes.some((code) => STATUS_TABLE[code].retryAfterMs !== undefined);
  const headers = {
    ...REQUEST_ID_HEADER,
    ...(late ? headerSchemas({ 'Retry-After': 'Seconds' }) : {}),
    ...(status === 401 ? headerSchemas({ 'WWW-Authenticate': 'Bearer' }) : {}),
    ...(status === 405 ? headerSchemas({ Allow: 'The methods of this path' }) : {}),
  };
  const description = codes.map((code) => `\`${code}\`: ${STATUS_TABLE[code].title}`).join('. ');
  return { description, headers, content: { 'application/problem+json': { schema: Problem } } };
}

function headerSchemas(headers: Readonly<Record<string, string>>): Record<string, { type: string; description: string }> {
  return Object.fromEntries(Object.entries(headers).map(([name, description]) => [name, { type: 'string', description }]));
}

/** A wait in a cycle, wherever one is shown. */
export const CycleMemberBody = Type.Object(
  { lease_ref: Type.String(), client_id: nullableString(), waits_for: nullableString('null in an event: outside the scope of who watches') },
  { title: 'CycleMember' },
);

/** A write of a lease that is broken, so that harm can be judged and undone. */
export const CommittedWriteBody = Type.Object(
  {
    operation_id: Type.String(),
    action: Type.String(),
    resource: Type.String(),
    at: time('Committed'),
    etag_before: nullableString(),
    etag_after: nullableString(),
  },
  { title: 'CommittedWrite' },
);

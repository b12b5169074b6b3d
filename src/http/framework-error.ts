import { outOfBounds } from '../domain/bounds.ts';
import { asGatewayError, type ErrorCode, GatewayError } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Issue } from './validator.ts';

/**
 * What the framework, its plugins and the HTTP parser throw, put into words of the contract. Their own messages may carry
 * parts of the request, so they are not passed on; validation messages are, because they name only fields of our schemas.
 */
const FRAMEWORK_CODES: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  FST_ERR_BAD_URL: ['invalid_path', 'The URL is not percent-encoded UTF-8.'],
  FST_ERR_MAX_PARAM_LENGTH: ['uri_too_long', 'A part of the URL is too long.'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['unsupported_media_type', 'This Content-Type is not supported here.'],
  FST_ERR_CTP_BODY_TOO_LARGE: ['body_too_large', `A JSON body may have ${LIMITS.jsonBodyBytesMax} bytes.`],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['incomplete_body', 'The body does not have the length that Content-Length gives.'],
  FST_ERR_CTP_EMPTY_JSON_BODY: ['invalid_request', 'The body is empty.'],
  FST_ERR_CTP_INVALID_JSON_BODY: ['invalid_request', 'The body is not valid JSON.'],
  FST_PARTS_LIMIT: ['body_too_large', 'The form has too many parts.'],
  FST_FILES_LIMIT: ['body_too_large', `One upload may have ${LIMITS.multipartFilesMax} files.`],
  FST_FIELDS_LIMIT: ['invalid_request', 'The form has fields that are not files.'],
  FST_REQ_FILE_TOO_LARGE: ['body_too_large', 'One file of the upload is over the limit of the gateway.'],
  FST_PROTO_VIOLATION: ['invalid_request', 'A part of the form has a reserved name.'],
  FST_MP_PREMATURE_CLOSE: ['incomplete_body', 'The connection ended before the form was complete.'],
};

interface FrameworkError {
  readonly code?: unknown;
  readonly statusCode?: unknown;
  readonly validation?: unknown;
  readonly validationContext?: unknown;
}

/** Keeps a `GatewayError`; a client's mistake that the framework found becomes a 400; all else is `internal`. */
export function fromFramework(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError || typeof thrown !== 'object' || thrown === null) return asGatewayError(thrown);
  const error: FrameworkError = thrown;
  if (Array.isArray(error.validation)) return invalidFields(error.validation, error.validationContext);
  const known = typeof error.code === 'string' ? FRAMEWORK_CODES[error.code] : undefined;
  if (known !== undefined) return new GatewayError(known[0], { detail: known[1], cause: thrown });
  if (thrown instanceof SyntaxError && error.statusCode === 400)
    return new GatewayError('invalid_request', { detail: 'The body is not valid JSON.', cause: thrown });
  return asGatewayError(thrown);
}

function invalidFields(issues: readonly unknown[], context: unknown): GatewayError {
  const errors = issues.slice(0, 10).map((issue) => {
    const { instancePath, message } = issue as { instancePath?: unknown; message?: unknown };
    return { pointer: typeof instancePath === 'string' ? instancePath : '', detail: typeof message === 'string' ? message : 'is not valid' };
  });
  const where = context === 'querystring' ? 'query' : typeof context === 'string' ? context : 'request';
  const first = errors[0];
  const field = first?.pointer.slice(1) ?? '';
  const { bounds, refusedAs } = issues[0] as Pick<Issue, 'bounds' | 'refusedAs'>;
  if (refusedAs !== undefined) return new GatewayError(refusedAs.code, { detail: refusedAs.detail, members: { errors } });
  if (bounds !== undefined) return outOfBounds(field, bounds, { errors });
  const detail = first === undefined ? 'is not valid' : `${field === '' ? '' : `${field}: `}${first.detail}`;
  return new GatewayError('invalid_request', { detail: `The ${where} is not valid: ${detail}.`, members: { errors } });
}

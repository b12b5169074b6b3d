import { FencegateError, isErrorCode } from './errors.ts';

/** The parts of an answer that an error is made of, whatever carried it. */
export interface RefusalParts {
  readonly status: number;
  readonly header: (name: string) => string | null;
  readonly text: string;
}

const MS_PER_SECOND = 1_000;
const FIXED: ReadonlySet<string> = new Set(['type', 'title', 'status', 'detail', 'code', 'request_id']);

/** Reads a problem document (RFC 9457). What is none, or has a code that this client does not know, is `unexpected_answer`. */
export function refusalOf({ status, header, text }: RefusalParts): FencegateError {
  const problem = objectOf(text);
  const requestId = stringOf(problem['request_id']) ?? header('x-request-id');
  const retryAfterMs = retryAfter(header('retry-after'));
  const members = Object.fromEntries(Object.entries(problem).filter(([name]) => !FIXED.has(name)));
  const { code } = problem;
  if (isErrorCode(code)) {
    const detail = stringOf(problem['detail']) ?? stringOf(problem['title']) ?? code;
    return new FencegateError(code, { detail, status, requestId, members, retryAfterMs });
  }
  const detail = `The answer ${status} is none of a gateway that this client knows.`;
  return new FencegateError('unexpected_answer', { detail, status, requestId, members: { ...members, code: stringOf(code) }, retryAfterMs });
}

function objectOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    // A page of a proxy, say: what is not JSON has no members.
    return {};
  }
}

function stringOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** Seconds, or an HTTP date (RFC 9110, 10.2.3), as ms from now. */
function retryAfter(value: string | null): number | null {
  if (value === null || value === '') return null;
  if (/^[0-9]{1,9}$/.test(value)) return Number(value) * MS_PER_SECOND;
  const atMs = Date.parse(value);
  return Number.isNaN(atMs) ? null : Math.max(0, atMs - Date.now());
}

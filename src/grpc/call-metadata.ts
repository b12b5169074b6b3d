import type { Metadata } from '@grpc/grpc-js';
import { refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import { assertLabel, isRequestId } from '../domain/sent-text.ts';

/** Reading of metadata and of labels in messages, checked for form. */

/** The texts of one name; binary metadata is not asked for. */
function textsOf(metadata: Metadata, name: string): string[] {
  return metadata.get(name).filter((value) => typeof value === 'string');
}

/** As the HTTP header: what was sent twice is joined, and so is no valid credential. */
export function authorizationOf(metadata: Metadata): string | undefined {
  const values = textsOf(metadata, 'authorization');
  return values.length === 0 ? undefined : values.join(', ');
}

/** An id that the client chose, when it is a valid one. */
export function sentRequestId(metadata: Metadata): string | null {
  const [sent, ...more] = textsOf(metadata, 'x-request-id');
  return sent !== undefined && more.length === 0 && isRequestId(sent) ? sent : null;
}

/** The label of the caller in metadata; `null` when not sent. Throws `invalid_request`. */
export function sentClientId(metadata: Metadata): string | null {
  const [sent, ...more] = textsOf(metadata, 'x-client-id');
  if (more.length > 0) throw refuse('invalid_request', 'x-client-id may be sent once.');
  return sent === undefined ? null : label('x-client-id', sent, LIMITS.clientIdBytesMax);
}

/** The label for the record of a refusal that came before it was judged: that of the message goes first; one that is itself malformed is left out. */
export function recordedClientId(inMessage: string, metadata: Metadata): string | null {
  try {
    return label('client_id', inMessage, LIMITS.clientIdBytesMax) ?? sentClientId(metadata);
  } catch {
    return null;
  }
}

/** Plain text of at most `bytesMax` bytes; empty: `null`. Throws `invalid_request`. */
export function label(field: string, text: string, bytesMax: number): string | null {
  return assertLabel(text === '' ? null : text, field, bytesMax);
}

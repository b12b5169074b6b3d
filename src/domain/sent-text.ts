import { refuse } from './errors.ts';
import { LIMITS } from './limits.ts';

/** Short texts that a client chooses, by whichever way they come: labels and request ids. */

const REQUEST_ID = /^[A-Za-z0-9._~:/+=@-]+$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this looks for
const CONTROL = /[\u0000-\u001f\u007f]/;

export function isRequestId(text: string): boolean {
  return text.length <= LIMITS.requestIdBytesMax && REQUEST_ID.test(text);
}

export function hasControlCharacter(text: string): boolean {
  return CONTROL.test(text);
}

/** Plain text of 1 to `bytesMax` bytes; `null` when none was sent. Throws `invalid_request`. */
export function assertLabel(text: string | null, name: string, bytesMax: number): string | null {
  if (text !== null && (hasControlCharacter(text) || text === '' || Buffer.byteLength(text) > bytesMax)) {
    throw refuse('invalid_request', `${name} is not plain text of 1 to ${bytesMax} bytes.`);
  }
  return text;
}

import { MIMEType } from 'node:util';
import { refuse } from '../domain/errors.ts';

const LINE_END = '\r\n';
const LAST = '--';

/** Of the value of a `Content-Type` field; `null` when it names none, or cannot be read. */
export function boundaryOf(contentType: string | undefined): string | null {
  try {
    return new MIMEType(contentType ?? '').params.get('boundary');
  } catch {
    return null;
  }
}

/**
 * Passes a form on unchanged. Throws `invalid_request` where the boundary is followed by anything but the end of its line or of the form (RFC 2046,
 * 5.1.1; blanks, which nobody may write there, included): the parser would drop what comes next without a word.
 */
export async function* wellDelimited(form: AsyncIterable<Uint8Array>, boundary: string): AsyncGenerator<Uint8Array> {
  const delimiter = Buffer.from(`${LINE_END}--${boundary}`, 'latin1');
  // Before the first one there may be no line.
  let kept: Buffer = Buffer.from(LINE_END);
  let over = false;
  for await (const chunk of form) {
    if (!over) {
      const seen = Buffer.concat([kept, chunk]);
      const { next, last } = judgedUpTo(seen, delimiter);
      over = last;
      kept = seen.subarray(Math.max(next, seen.length - delimiter.length - LAST.length + 1));
    }
    yield chunk;
  }
}

/** `next`: behind the last delimiter that was judged; one at the very end waits for what follows it. */
function judgedUpTo(seen: Buffer, delimiter: Buffer): { readonly next: number; readonly last: boolean } {
  let next = 0;
  for (let found = seen.indexOf(delimiter); found !== -1; found = seen.indexOf(delimiter, next)) {
    const behind = found + delimiter.length;
    if (seen.length < behind + LAST.length) break;
    const follows = seen.toString('latin1', behind, behind + LAST.length);
    if (follows === LAST) return { next: behind, last: true };
    if (follows !== LINE_END) throw refuse('invalid_request', 'The boundary of the form occurs in a part, or is followed by something on its line.');
    next = behind;
  }
  return { next, last: false };
}

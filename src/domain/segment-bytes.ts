/**
 * A name on a disk is bytes, and need not be UTF-8 (trap F22). In a path of ours a name that is not has one character for each of its bytes:
 * those from 0x80 on are U+DC80 to U+DCFF, which stand alone in no well-formed text, so that no other name looks like it.
 */
const ESCAPE = 0xdc00;
const ESCAPED = /[\udc80-\udcff]/u;
const PERCENT_ENCODED = /^(?:[!-$&-~]|%[0-9a-f]{2})+$/i;

/** Whether a segment is such a name. */
export function isOfBytes(segment: string): boolean {
  return ESCAPED.test(segment);
}

/** A percent-encoded name that is not UTF-8; `null` when it is not percent-encoded either. */
export function segmentOfBytes(encoded: string): string | null {
  if (!PERCENT_ENCODED.test(encoded)) return null;
  return encoded.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => {
    const byte = Number.parseInt(hex, 16);
    return String.fromCharCode(byte < 0x80 ? byte : ESCAPE + byte);
  });
}

/** A name as the disk has it. */
export function nameOnDisk(segment: string): string | Buffer {
  // The lower half of each character is its byte.
  return isOfBytes(segment) ? Buffer.from(segment, 'latin1') : segment;
}

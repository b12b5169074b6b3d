import { refuse } from './errors.ts';

/** Names that other systems cannot have, take for something else, or show differently from what they are (trap F23). */

const DEVICE = /^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\.|$)/i;
const RESERVED_CHARACTER = /[<>:"|?*]/;
/** They turn the direction of the text around them: `exe.txt` can be shown for `txt.exe`. */
const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;

/** For a volume with `names: portable`, of every segment of a path that is to be made. Throws `invalid_path`. */
export function assertPortable(path: string): void {
  for (const segment of path.split('/')) {
    const problem = problemOf(segment);
    if (problem !== null) throw refuse('invalid_path', `This volume takes portable names only: ${problem}.`);
  }
}

function problemOf(segment: string): string | null {
  if (DEVICE.test(segment)) return 'a segment is the name of a device on Windows';
  if (RESERVED_CHARACTER.test(segment)) return 'a segment has one of < > : " | ? *';
  if (segment.endsWith('.') || segment.endsWith(' ') || segment.startsWith(' ')) return 'a segment begins or ends with a blank, or ends with a dot';
  if (segment.startsWith('-')) return 'a segment begins with "-", which programs take for an option';
  if (BIDI.test(segment)) return 'a segment has a character that turns the direction of the text';
  return null;
}

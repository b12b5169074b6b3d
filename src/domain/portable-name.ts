import { refuse } from './errors.ts';

/** Names that other systems cannot have, take for something else, or show differently from what they are (trap F23). */

/** Windows finds the device also behind blanks, and whatever the name ends in. */
const DEVICE = /^(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³]) *(\.|$)/i;
/** Windows has them for patterns and for streams inside of a file. */
const RESERVED_CHARACTER = /[<>:"|?*]/;
/** They turn the direction of the text around them: `exe.txt` can be shown for `txt.exe`. */
const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;

/** Of one name that is to be made on a volume with `names: portable`. Throws `invalid_path`, which says the rule and the setting. */
export function assertPortable(name: string): void {
  const problem = problemOf(name);
  if (problem === null) return;
  throw refuse(
    'invalid_path',
    `A name that would be made ${problem}. This volume takes portable names only; "names: any" in its configuration lifts that.`,
  );
}

function problemOf(name: string): string | null {
  if (DEVICE.test(name)) return 'is that of a device on Windows';
  if (RESERVED_CHARACTER.test(name)) return 'has one of < > : " | ? *';
  if (name.startsWith(' ') || name.endsWith(' ')) return 'begins or ends with a blank';
  if (name.endsWith('.')) return 'ends with a dot';
  if (name.startsWith('-')) return 'begins with "-", which programs take for an option';
  if (BIDI.test(name)) return 'has a character that turns the direction of the text';
  return null;
}

/**
 * What a program passes in is looked at here, once, before anything is sent: a call that cannot be meant rejects with a `TypeError` for a value of
 * the wrong kind and a `RangeError` for a number that is out of range, and its message names the argument. Upper bounds are the gateway's to judge.
 */

/** Throws when `value` cannot be meant; `name` is what the message calls it. */
export type Check = (value: unknown, name: string) => void;

/** A check for each member of `T`: the compiler asks for those that are missing. */
export type Checks<T> = Readonly<Record<keyof T & string, Check>>;

const CODE = 'invalid_argument';
/** What a field of an HTTP header may hold. */
const HEADER_TEXT = /^[\t\x20-\x7e\x80-\xff]*$/;
const PRIORITY_MAX = 9;

/** Whether `thrown` comes from here: the call was wrong, and nothing was sent. */
export function isInvalidArgument(thrown: unknown): thrown is TypeError | RangeError {
  return (thrown instanceof TypeError || thrown instanceof RangeError) && 'code' in thrown && thrown.code === CODE;
}

export function wrongKind(name: string, expected: string, value: unknown): TypeError {
  return notMeant(`${name} must be ${expected}; got ${kindOf(value)}`);
}

/** For what is wrong with a value beside its kind. */
export function notMeant(message: string): TypeError {
  return Object.assign(new TypeError(message), { code: CODE });
}

/** Options that are absent or `undefined` are not looked at; a name that is none, such as a misspelt one, is refused rather than passed over. */
export function checkOptions<T extends object>(options: T, checks: Checks<T>, name = 'options'): void {
  object(options, name);
  const known: Readonly<Record<string, Check | undefined>> = checks;
  for (const [key, value] of Object.entries(options)) {
    const check = Object.hasOwn(known, key) ? known[key] : undefined;
    if (check === undefined) throw notMeant(`there is no option ${key}; there are ${Object.keys(checks).join(', ')}`);
    if (value !== undefined) check(value, key);
  }
}

export const text: Check = (value, name) => {
  if (typeof value !== 'string') throw wrongKind(name, 'a string', value);
};

export const someText: Check = (value, name) => {
  if (typeof value !== 'string' || value === '') throw wrongKind(name, 'a string that is not empty', value);
};

export const headerText: Check = (value, name) => {
  if (typeof value !== 'string' || !HEADER_TEXT.test(value))
    throw wrongKind(name, 'a string without line breaks or characters beyond Latin-1', value);
};

export const sha256Text: Check = (value, name) => {
  if (typeof value !== 'string' || !/^[0-9a-f]{64}$/.test(value)) throw wrongKind(name, '64 lower-case hexadecimal digits', value);
};

export const flag: Check = (value, name) => {
  if (typeof value !== 'boolean') throw wrongKind(name, 'true or false', value);
};

export const callable: Check = (value, name) => {
  if (typeof value !== 'function') throw wrongKind(name, 'a function', value);
};

export const object: Check = (value, name) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrongKind(name, 'an object', value);
};

export const jsonObject: Check = (value, name) => {
  object(value, name);
  try {
    JSON.stringify(value);
  } catch {
    throw wrongKind(name, 'an object that is JSON', value);
  }
};

/** Of this realm or another one. */
export const abortSignal: Check = (value, name) => {
  if (typeof value !== 'object' || value === null || !('aborted' in value) || !('addEventListener' in value)) {
    throw wrongKind(name, 'an AbortSignal', value);
  }
};

export const leaseMode: Check = (value, name) => oneOf(value, name, ['exclusive', 'shared']);

/** Milliseconds that this side counts: parts of one count, too. For "no limit" the option is left away. */
export const durationMs: Check = (value, name) => {
  if (typeof value !== 'number') throw wrongKind(name, 'a number of milliseconds', value);
  if (!Number.isFinite(value) || value < 0) throw outOfRange(name, 'a number of milliseconds, 0 or more', value);
};

/** What goes to the gateway as it is: milliseconds, bytes, sequence numbers. */
export const wholeNumber: Check = (value, name) => {
  if (typeof value !== 'number') throw wrongKind(name, 'a number', value);
  if (!Number.isSafeInteger(value) || value < 0) throw outOfRange(name, 'a whole number, 0 or more', value);
};

export const pageLimit: Check = (value, name) => {
  wholeNumber(value, name);
  if (value === 0) throw outOfRange(name, 'a whole number, 1 or more', value);
};

export const priority: Check = (value, name) => {
  wholeNumber(value, name);
  if (Number(value) > PRIORITY_MAX) throw outOfRange(name, `a whole number from 0 to ${PRIORITY_MAX}`, value);
};

export const gatewayUrl: Check = (value, name) => {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : null;
  const plain = url !== null && url.username === '' && url.password === '' && url.search === '' && url.hash === '';
  if (url === null || !plain || !/^https?:$/.test(url.protocol))
    throw wrongKind(name, 'an http or https URL without credentials, query or fragment', value);
};

/** One name, or several. */
export const resources: Check = (value, name) => {
  if (typeof value === 'string') return;
  if (!Array.isArray(value)) throw wrongKind(name, 'volume/path, or several of them', value);
  if (value.length === 0) throw Object.assign(new RangeError(`${name} must name at least one resource`), { code: CODE });
  for (const one of value) text(one, name);
};

export const someTexts: Check = (value, name) => {
  if (!Array.isArray(value)) throw wrongKind(name, 'an array of strings', value);
  if (value.length === 0) throw Object.assign(new RangeError(`${name} must name at least one`), { code: CODE });
  for (const one of value) someText(one, name);
};

function oneOf(value: unknown, name: string, words: readonly string[]): void {
  if (typeof value !== 'string' || !words.includes(value)) throw wrongKind(name, words.map((word) => `'${word}'`).join(' or '), value);
}

export function outOfRange(name: string, expected: string, value: unknown): RangeError {
  return Object.assign(new RangeError(`${name} must be ${expected}; got ${String(value)}`), { code: CODE });
}

/** Never the value itself: it may be a secret in the wrong place. */
function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === 'string') return value === '' ? 'an empty string' : 'another string';
  if (typeof value !== 'object') return `a ${typeof value}`;
  const { name } = value.constructor ?? { name: '' };
  return name === '' || name === 'Object' ? 'an object' : `a value of ${name}`;
}

import type { TSchema } from '@sinclair/typebox';
import { closest, distance } from 'fastest-levenshtein';

/** Everything that is wrong with the configuration, one line each: all of it is reported, not only the first. */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

const NEAR_DISTANCE_MAX = 8;

/** ` (did you mean X?)` with the nearest known name, or nothing when none is near. */
export function didYouMean(name: string, known: readonly string[]): string {
  if (known.length === 0) return '';
  const nearest = closest(name, [...known]);
  const limit = Math.min(NEAR_DISTANCE_MAX, Math.max(2, Math.floor(nearest.length / 2)));
  return distance(name, nearest) <= limit ? ` (did you mean ${nearest}?)` : '';
}

/** Says in words what a schema accepts: `a whole number from 0 to 65535`. */
export function expectation(schema: TSchema): string {
  if (Array.isArray(schema['anyOf'])) {
    const choices = (schema['anyOf'] as TSchema[]).map((choice) => ('const' in choice ? String(choice['const']) : expectation(choice)));
    return choices.length < 2 ? choices.join('') : `${choices.slice(0, -1).join(', ')} or ${choices[choices.length - 1]}`;
  }
  if ('const' in schema) return String(schema['const']);
  switch (schema['type']) {
    case 'integer':
      return `a whole number${range(schema)}`;
    case 'boolean':
      return 'true or false';
    case 'array':
      return 'a list';
    case 'object':
      return 'a group of settings';
    case 'null':
      return 'nothing';
    default:
      return typeof schema['errorMessage'] === 'string'
        ? schema['errorMessage']
        : schema['pattern'] === undefined
          ? 'a text'
          : `a text of the form ${schema['pattern']}`;
  }
}

function range(schema: TSchema): string {
  const { minimum, maximum } = schema as { minimum?: number; maximum?: number };
  if (minimum === undefined) return '';
  if (maximum === undefined || maximum === Number.MAX_SAFE_INTEGER) return ` of at least ${minimum}`;
  return ` from ${minimum} to ${maximum}`;
}

/** `ENOENT`, or the error's words when it has no code. */
export function causeOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  return 'code' in thrown ? String(thrown.code) : thrown.message;
}

const SHOWN_VALUE_MAX = 60;

/** A bad value as a message shows it: short, one line. */
export function shown(value: unknown): string {
  const text = typeof value === 'string' ? JSON.stringify(value) : (JSON.stringify(value) ?? String(value));
  return text.length > SHOWN_VALUE_MAX ? `${text.slice(0, SHOWN_VALUE_MAX)}...` : text;
}

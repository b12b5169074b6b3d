import type { TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { CLIENT_VARIABLES, ENVIRONMENT_VARIABLES, type EnvironmentValues } from './environment-schema.ts';
import { didYouMean, expectation, shown } from './problems.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

const PREFIX = 'FENCEGATE_';

/**
 * Reads the variables of the gateway. An empty string counts as unset (what `VAR= command` and compose files give).
 * Pushes one line per problem; a bad value stands at its default, so that the checks that follow can report theirs too.
 */
export function readEnvironment(environment: Environment, problems: string[]): EnvironmentValues {
  rejectUnknown(environment, problems);
  const values: Record<string, unknown> = {};
  for (const [name, schema] of ENVIRONMENT_VARIABLES) {
    const text = environment[name] ?? '';
    const value = fromText(schema, text);
    const fits = text !== '' && Value.Check(schema, value);
    if (text !== '' && !fits) problems.push(`${name}=${shown(text)}: expected ${expectation(schema)}`);
    values[name] = fits ? value : schema['default'];
  }
  return values as EnvironmentValues;
}

function rejectUnknown(environment: Environment, problems: string[]): void {
  const known = [...ENVIRONMENT_VARIABLES.map(([name]) => name), ...CLIENT_VARIABLES];
  for (const name of Object.keys(environment).sort()) {
    if (!name.startsWith(PREFIX) || known.includes(name)) continue;
    problems.push(`${name}: unknown variable${didYouMean(name, known)}`);
  }
}

const WHOLE_NUMBER = /^-?[0-9]{1,16}$/;

/** Strict: no exponent, no blanks, no `1`/`yes` for true. What does not fit stays a text and fails the check. */
function fromText(schema: TSchema, text: string): unknown {
  if (schema['type'] === 'integer') return WHOLE_NUMBER.test(text) ? Number(text) : text;
  if (schema['type'] === 'boolean') return text === 'true' ? true : text === 'false' ? false : text;
  return text;
}

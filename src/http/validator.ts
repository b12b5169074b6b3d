import type { TSchema } from '@sinclair/typebox';
import { TypeCompiler, type ValueError, ValueErrorType } from '@sinclair/typebox/compiler';
import { Value } from '@sinclair/typebox/value';
import type { FastifySchemaCompiler, FastifyServerOptions } from 'fastify';
import type { Bounds } from '../domain/bounds.ts';
import { OF_WRONG_LENGTH, type WrongLength } from './schemas/common.ts';

/** Validates requests by the schemas that also make the OpenAPI document. Text of URLs and headers is converted, JSON bodies are not. */
const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const compiled = TypeCompiler.Compile(schema);
  return (value: unknown) => {
    const converted = httpPart === 'body' ? value : fromText(schema, value);
    if (compiled.Check(converted)) return { value: converted };
    // The framework takes a list of issues, though its types only know an error.
    const issues = [...compiled.Errors(converted)].map((error) => issueOf(error));
    return { error: issues as unknown as Error & { message: string; instancePath: string }[] };
  };
};

const WHOLE_NUMBER = /^-?\d+$/;

/** Text as what its schema says it is. The library would make 2 of "2.9" and 1 of "1e0" where a whole number is meant: that stays text, and is refused. */
function fromText(schema: TSchema, value: unknown): unknown {
  const converted: unknown = Value.Convert(schema, value);
  if (typeof value !== 'object' || value === null || typeof converted !== 'object' || converted === null) return converted;
  const kept = Object.entries(value).filter(
    ([name, text]) => typeof text === 'string' && !WHOLE_NUMBER.test(text) && Number.isInteger(Reflect.get(converted, name)),
  );
  return kept.length === 0 ? converted : { ...converted, ...Object.fromEntries(kept) };
}

type CompilersFactory = NonNullable<NonNullable<FastifyServerOptions['schemaController']>['compilersFactory']>;

/** In the place of the framework's own, which is then not even loaded; its types know no other. */
export const buildValidator = (() => validatorCompiler) as unknown as NonNullable<CompilersFactory['buildValidator']>;

export interface Issue {
  readonly message: string;
  readonly instancePath: string;
  /** Of a whole number that lies outside of them. */
  readonly bounds?: Bounds;
  /** Of a text with rules of its own. */
  readonly refusedAs?: WrongLength;
}

const OUT_OF_BOUNDS: ReadonlySet<ValueErrorType> = new Set([ValueErrorType.IntegerMinimum, ValueErrorType.IntegerMaximum]);

const WRONG_LENGTH: ReadonlySet<ValueErrorType> = new Set([ValueErrorType.StringMinLength, ValueErrorType.StringMaxLength]);

/** Of a union that nothing fits, what is said is why its first form does not: "Expected union value" helps nobody. */
function issueOf(error: ValueError): Issue {
  if (error.type === ValueErrorType.Union) {
    const literals = literalsOf(error.schema);
    if (literals !== null) return { message: `Expected one of ${literals.join(', ')}`, instancePath: error.path };
    const first = error.errors[0]?.First();
    if (first !== undefined) return issueOf(first);
  }
  const [min, max]: unknown[] = [error.schema['minimum'], error.schema['maximum']];
  if (OUT_OF_BOUNDS.has(error.type) && typeof min === 'number' && typeof max === 'number')
    return { message: `lies between ${min} and ${max}`, instancePath: error.path, bounds: { min, max } };
  const refusedAs = Reflect.get(error.schema, OF_WRONG_LENGTH) as WrongLength | undefined;
  if (WRONG_LENGTH.has(error.type) && refusedAs !== undefined) return { message: refusedAs.detail, instancePath: error.path, refusedAs };
  return { message: error.message, instancePath: error.path };
}

function literalsOf(schema: TSchema): readonly unknown[] | null {
  const forms: unknown = schema['anyOf'];
  if (!Array.isArray(forms)) return null;
  const values = forms.map((form: unknown) => (typeof form === 'object' && form !== null && 'const' in form ? form.const : undefined));
  return values.includes(undefined) ? null : values;
}

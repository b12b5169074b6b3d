import type { Static, TSchema } from '@sinclair/typebox';
import { type ValueError, ValueErrorType } from '@sinclair/typebox/errors';
import { Value } from '@sinclair/typebox/value';
import { type Document, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml';
import { didYouMean, expectation, shown } from './problems.ts';

/** A YAML text that fits its schema, and where each of its keys stands. */
export interface CheckedYaml<T> {
  readonly value: T;
  /** The line of the key (or list item) that `path` leads to, or of the nearest one above it. */
  lineOf(path: readonly (string | number)[]): number;
}

/** A file larger than this is a mistake in the name of the file. */
const YAML_BYTES_MAX = 4_194_304;

/**
 * Parses and checks. Pushes one line per problem, each with file and line; `null` when there was one.
 * @param source the file's name as the operator gave it, for the messages.
 */
export function checkYaml<S extends TSchema>(text: string, source: string, schema: S, problems: string[]): CheckedYaml<Static<S>> | null {
  if (Buffer.byteLength(text) > YAML_BYTES_MAX) {
    problems.push(`${source}: larger than ${YAML_BYTES_MAX} bytes`);
    return null;
  }
  const counter = new LineCounter();
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false });
  const before = problems.length;
  for (const error of [...document.errors, ...document.warnings]) {
    problems.push(`${source}:${counter.linePos(error.pos[0]).line}: ${error.message.split('\n')[0]}`);
  }
  // What holds itself has no end for whoever checks or prints it.
  visit(document, {
    Alias: (_, alias, above) => {
      const target = alias.resolve(document);
      if (target !== undefined && above.includes(target))
        problems.push(`${source}:${counter.linePos(alias.range?.[0] ?? 0).line}: *${alias.source} stands inside what it names`);
    },
  });
  if (problems.length > before) return null;
  const value = toPlain(document, source, problems);
  if (value === undefined) return null;
  const lineOf = (path: readonly (string | number)[]): number => counter.linePos(offsetOf(document, path)).line;
  for (const [path, words] of firstErrors(schema, value)) problems.push(`${source}:${lineOf(path)}: ${words}`);
  return problems.length > before ? null : { value: value as Static<S>, lineOf };
}

/** An empty file is an empty group of settings. `undefined`: it could not be read, and the problem was pushed. */
function toPlain(document: Document, source: string, problems: string[]): unknown {
  try {
    return document.toJS() ?? {};
  } catch (thrown) {
    // Too many aliases: the guard against a file that unfolds without bound.
    problems.push(`${source}:1: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
    return undefined;
  }
}

/** One message per place: the checker reports a missing key twice, once as missing and once as of the wrong type. */
function firstErrors(schema: TSchema, value: unknown): [readonly string[], string][] {
  const byPath = new Map<string, ValueError>();
  for (const error of Value.Errors(schema, value)) if (!byPath.has(error.path)) byPath.set(error.path, error);
  return [...byPath.values()].map((error) => {
    const path = error.path.split('/').slice(1).map(unescapePointer);
    return [path, describe(error, path)];
  });
}

function describe(error: ValueError, path: readonly string[]): string {
  const name = path.join('.');
  switch (error.type) {
    case ValueErrorType.ObjectAdditionalProperties: {
      const key = path.at(-1) ?? '';
      return `unknown key ${name}${didYouMean(key, Object.keys((error.schema['properties'] as object | undefined) ?? {}))}`;
    }
    case ValueErrorType.ObjectRequiredProperty:
      return `${name} is missing`;
    case ValueErrorType.ArrayMaxItems:
    case ValueErrorType.ArrayMinItems:
      return `${name}: ${error.message.toLowerCase()}`;
    default: {
      const found = error.schema['writeOnly'] === true ? '' : `, not ${shown(error.value)}`;
      return name === '' ? `expected ${expectation(error.schema)}` : `${name}: expected ${expectation(error.schema)}${found}`;
    }
  }
}

function unescapePointer(segment: string): string {
  return segment.replaceAll('~1', '/').replaceAll('~0', '~');
}

function offsetOf(document: Document, path: readonly (string | number)[]): number {
  let offset = 0;
  let node: unknown = document.contents;
  for (const step of path) {
    if (isMap(node)) {
      const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === String(step));
      if (pair === undefined || !isScalar(pair.key)) break;
      offset = pair.key.range?.[0] ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      const item: unknown = node.items[Number(step)];
      if (!isNode(item)) break;
      offset = item.range?.[0] ?? offset;
      node = item;
    } else break;
  }
  return offset;
}

import type { Query } from './transport.ts';

type Camel<S extends string> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S;

/** The same members, named as TypeScript names them. */
export type CamelKeys<T> = { readonly [K in keyof T as K extends string ? Camel<K> : never]: T[K] };

/** `pathPrefix` is `path_prefix`: the name that JSON and queries have for it. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The query parameters that camel-case members stand for: `pathPrefix` is `path_prefix`. */
export function queryOf(members: object): Query {
  const pairs = Object.entries(members).map(([name, value]): [string, string | number | undefined] => {
    return [snakeCase(name), value];
  });
  return Object.fromEntries(pairs);
}

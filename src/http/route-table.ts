/** What is understood at all; `Allow` where no path decides. */
export const ANY_METHOD = ['GET', 'HEAD', 'PUT', 'PATCH', 'POST', 'DELETE', 'OPTIONS'];

/** Which methods a path has, for `Allow`: the router only says that a method does not fit, not which ones would. */
export class RouteTable {
  readonly #patterns = new Map<string, Set<string>>();

  add(pattern: string, methods: readonly string[]): void {
    const known = this.#patterns.get(pattern) ?? new Set<string>();
    for (const method of methods) known.add(method);
    this.#patterns.set(pattern, known);
  }

  /** Sorted, with OPTIONS; empty when no route has this path. A route with fixed segments goes before one with parameters. */
  allowed(path: string): string[] {
    const matches = [...this.#patterns].filter(([pattern]) => fits(pattern, path));
    const fixed = matches.filter(([pattern]) => !/[:*]/.test(pattern));
    const methods = new Set((fixed.length > 0 ? fixed : matches).flatMap(([, known]) => [...known]));
    return methods.size === 0 ? [] : [...methods.add('OPTIONS')].sort();
  }
}

function fits(pattern: string, path: string): boolean {
  const wanted = pattern.split('/');
  const given = path.split('/');
  for (const [i, segment] of wanted.entries()) {
    if (segment === '*') return true;
    const actual = given[i];
    if (actual === undefined || (segment.startsWith(':') ? actual === '' : segment !== actual)) return false;
  }
  return wanted.length === given.length;
}

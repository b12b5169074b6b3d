/** JSON whose integers may exceed 2^53: a `bigint` becomes `{"$n":"123"}` and comes back as one. For the journal's own columns. */
export function toJsonText(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) => (typeof item === 'bigint' ? { $n: item.toString() } : item));
}

export function fromJsonText(text: string): unknown {
  return JSON.parse(text, (_key, item: unknown) => {
    if (typeof item !== 'object' || item === null || !('$n' in item) || typeof item.$n !== 'string') return item;
    return Object.keys(item).length === 1 && /^-?[0-9]+$/.test(item.$n) ? BigInt(item.$n) : item;
  });
}

/** Insertion order is age: what is remembered is the newest, and beyond `max` entries the oldest is forgotten. */
export function rememberNewest<K, V>(entries: Map<K, V>, key: K, value: V, max: number): void {
  entries.delete(key);
  entries.set(key, value);
  if (entries.size <= max) return;
  const [oldest] = entries.keys();
  if (oldest !== undefined) entries.delete(oldest);
}

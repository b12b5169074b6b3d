/** Comparison of entity tags (RFC 9110, 8.8.3.2). Tags are header values, quotes and `W/` included. */

export function sameStrongly(a: string, b: string): boolean {
  return a === b && !a.startsWith('W/');
}

export function sameWeakly(a: string, b: string): boolean {
  return a.replace(/^W\//, '') === b.replace(/^W\//, '');
}

/** Everything of a paged list, page by page as it is asked for. */
export async function* pages<P extends { readonly next_cursor: string | null }, T>(
  page: (cursor: string | null) => Promise<P>,
  itemsOf: (page: P) => readonly T[],
): AsyncGenerator<T> {
  let cursor: string | null = null;
  do {
    const next: P = await page(cursor);
    yield* itemsOf(next);
    cursor = next.next_cursor;
  } while (cursor !== null);
}

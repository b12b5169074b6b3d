import { compareOrder, PRIORITY_MAX } from '../order-key.ts';

/** A place in a line; `priority` is the one in force (inheritance may raise it). */
export interface Queued<T> {
  /** Set before it is added. */
  sequence: number;
  priority: number;
  next: T | null;
  previous: T | null;
}

interface Bucket<T> {
  head: T | null;
  tail: T | null;
}

/**
 * A line in the order of the keys: one linked list per priority, because equals are in the order of arrival. Joining, leaving
 * and finding the next one do not grow with the length (R8); only people who look at the whole line walk it.
 */
export class ContenderLine<T extends Queued<T>> {
  readonly #buckets: readonly Bucket<T>[] = Array.from({ length: PRIORITY_MAX + 1 }, () => ({ head: null, tail: null }));
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(item: T): void {
    const bucket = this.#bucket(item.priority);
    // Walks only when a re-keyed contender joins others that came after it.
    let after = bucket.tail;
    while (after !== null && after.sequence > item.sequence) after = after.previous;
    const before = after === null ? bucket.head : after.next;
    item.previous = after;
    item.next = before;
    if (after === null) bucket.head = item;
    else after.next = item;
    if (before === null) bucket.tail = item;
    else before.previous = item;
    this.#size += 1;
  }

  /** The item must be in this line. */
  remove(item: T): void {
    const bucket = this.#bucket(item.priority);
    if (item.previous === null) bucket.head = item.next;
    else item.previous.next = item.next;
    if (item.next === null) bucket.tail = item.previous;
    else item.next.previous = item.previous;
    item.previous = null;
    item.next = null;
    this.#size -= 1;
  }

  rekey(item: T, priority: number): void {
    this.remove(item);
    item.priority = priority;
    this.add(item);
  }

  /** The highest priority in force among those who wait; -1 when nobody does. */
  topPriority(): number {
    return this.#buckets.findLastIndex((bucket) => bucket.head !== null);
  }

  /** Merges the lists by key. The line must not change while this is read. */
  *inOrder(): Generator<T, void> {
    const heads = this.#buckets.map((bucket) => bucket.head);
    for (;;) {
      let first: T | null = null;
      for (const head of heads) {
        if (head !== null && (first === null || compareOrder(head, first) < 0)) first = head;
      }
      if (first === null) return;
      heads[first.priority] = first.next;
      yield first;
    }
  }

  /** How many are served before `item`. */
  countBefore(item: T): number {
    let count = 0;
    for (const bucket of this.#buckets) {
      for (let other = bucket.head; other !== null && compareOrder(other, item) < 0; other = other.next) count += 1;
    }
    return count;
  }

  #bucket(priority: number): Bucket<T> {
    const bucket = this.#buckets[priority];
    if (bucket === undefined) throw new RangeError(`a priority lies in 0..${PRIORITY_MAX}, not ${priority}`);
    return bucket;
  }
}

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventStreamReader, type StreamEvent } from '../../../src/client/event-stream-reader.ts';

function read(...chunks: readonly (string | Uint8Array)[]): StreamEvent[] {
  const reader = new EventStreamReader();
  return chunks.flatMap((chunk) => reader.read(typeof chunk === 'string' ? Buffer.from(chunk) : chunk));
}

describe('server-sent events', () => {
  it('have a type, an id that stays, and data of several lines; comments and unknown fields do not count', () => {
    const text = ': hello\n\nid: 7\nevent: granted\ndata: {"a":1}\nretry: 3\n\ndata: one\ndata:two\ndata:  three\n\n';
    expect(read(text)).toEqual([
      { type: 'granted', id: '7', data: '{"a":1}' },
      { type: 'message', id: '7', data: 'one\ntwo\n three' },
    ]);
  });

  it('without data are none, and what is not ended yet is not told', () => {
    expect(read('event: a\nid: 1\n\ndata: x\n')).toEqual([]);
    expect(read('id: 1\0\ndata\n\n')).toEqual([{ type: 'message', id: null, data: '' }]);
  });

  it('come out the same wherever the chunks are cut and whichever way lines end', () => {
    const event = fc.record({
      type: fc.constantFrom('granted', 'grün'),
      id: fc.nat().map(String),
      data: fc.string({ unit: 'grapheme' }).map((text) => text.replace(/[\r\n]/g, '')),
    });
    fc.assert(
      fc.property(
        fc.array(event, { minLength: 1, maxLength: 4 }),
        fc.constantFrom('\n', '\r\n', '\r'),
        fc.array(fc.nat(200)),
        (events, end, cuts) => {
          const lines = events.flatMap(({ type, id, data }) => [`id: ${id}`, `event: ${type}`, `data: ${data}`, ': x', '']);
          // A lone return at the very end could be half of a line's end; one more comment settles it.
          const bytes = Buffer.from(`${lines.join(end)}${end}:${end}`);
          const places = [0, ...cuts.map((cut) => cut % bytes.length).sort((a, b) => a - b), bytes.length];
          const chunks = places.slice(1).map((place, i) => bytes.subarray(places[i], place));
          expect(read(...chunks)).toEqual(events);
        },
      ),
    );
  });

  it('end with an empty line of their own, also when a line ended between two chunks', () => {
    expect(read('data: x\r', '\n', '\n')).toEqual([{ type: 'message', id: null, data: 'x' }]);
    expect(read('data: x\r', '\n', 'data: y\n')).toEqual([]);
  });

  it('with a line that never ends are given up', () => {
    const reader = new EventStreamReader();
    const piece = Buffer.alloc(1_048_576, 120);
    expect(() => {
      for (let i = 0; i < 5; i += 1) reader.read(piece);
    }).toThrow('no end');
  });
});

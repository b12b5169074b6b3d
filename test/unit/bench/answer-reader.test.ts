import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Answer, AnswerReader } from '../../../bench/load/answer-reader.ts';

const STREAM = Buffer.from(
  [
    'HTTP/1.1 100 Continue\r\n\r\n',
    'HTTP/1.1 201 Created\r\nContent-Length: 11\r\nETag: "a"\r\n\r\nhello\r\n\r\nyo',
    'HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n',
    'HTTP/1.1 412 Precondition Failed\r\ncontent-length: 0\r\n\r\n',
  ].join(''),
);
const ANSWERS: readonly Answer[] = [
  { status: 100, closes: false },
  { status: 201, closes: false },
  { status: 204, closes: true },
  { status: 412, closes: false },
];

function readIn(pieces: readonly Buffer[]): readonly Answer[] {
  const reader = new AnswerReader();
  return pieces.flatMap((piece) => reader.feed(piece));
}

describe('the answer reader', () => {
  it('gives the same answers however the bytes are cut', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer({ min: 1, max: STREAM.length - 1 })), (cuts) => {
        const bounds = [0, ...cuts.toSorted((a, b) => a - b), STREAM.length];
        const pieces = bounds.slice(1).map((bound, index) => STREAM.subarray(bounds[index], bound));
        expect(readIn(pieces)).toEqual(ANSWERS);
      }),
    );
  });

  it('refuses a chunked answer, whose end it could not tell', () => {
    expect(() => readIn([Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')])).toThrow('chunked');
  });

  it('refuses what is not HTTP/1.1', () => {
    expect(() => readIn([Buffer.from('SSH-2.0-OpenSSH_9.2p1\r\n\r\n')])).toThrow('not an HTTP/1.1 answer');
  });

  it('refuses a head without end', () => {
    expect(() => readIn(Array.from({ length: 20 }, () => Buffer.alloc(1024, 'x')))).toThrow('too long');
  });
});

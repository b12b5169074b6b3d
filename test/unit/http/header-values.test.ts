import fc from 'fast-check';
import { expect, test } from 'vitest';
import { GatewayError } from '../../../src/domain/errors.ts';
import { digestField, digestsOf } from '../../../src/http/digest-headers.ts';
import { etagCondition } from '../../../src/http/header-values.ts';

test.each([
  [undefined, null],
  ['*', '*'],
  [' * ', '*'],
  ['"a"', ['"a"']],
  ['W/"a", "b,c" ,,"d"', ['W/"a"', '"b,c"', '"d"']],
  ['""', ['""']],
] as const)('the condition %j', (value, expected) => {
  expect(etagCondition(value, 'If-Match')).toEqual(expected);
});

test.each(['', ',', 'a', '"a', 'w/"a"', '"a" "b"', '*, "a"', '"a", *', '"a"b', `${'"a",'.repeat(101)}"b"`])(
  'the condition %j is refused',
  (value) => {
    expect(() => etagCondition(value, 'If-Match')).toThrow(GatewayError);
  },
);

test('a list of tags is read back as it was written', () => {
  const tag = fc
    .tuple(
      fc.boolean(),
      fc.string({ unit: fc.integer({ min: 0x23, max: 0x7e }).map((code) => String.fromCharCode(code)), maxLength: 20, size: 'max' }),
    )
    .map(([weak, text]) => `${weak ? 'W/' : ''}"${text}"`);
  fc.assert(
    fc.property(fc.array(tag, { minLength: 1, maxLength: 20, size: 'max' }), (tags) => {
      expect(etagCondition(tags.join(', '), 'If-Match')).toEqual(tags);
    }),
  );
});

test('a digest is read back as it was written, beside algorithms that are not known', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
      const hex = Buffer.from(bytes).toString('hex');
      expect(digestsOf(`md5=:AAAA:, ${digestField(hex)};q=1, other=token`, 'Repr-Digest')).toEqual({ sha256: hex });
    }),
  );
});

test('sha-512 is known too', () => {
  const bytes = Buffer.alloc(64, 7);
  expect(digestsOf(`sha-512=:${bytes.toString('base64')}:`, 'Content-Digest')).toEqual({ sha512: bytes.toString('hex') });
});

test('whatever is sent, a digest field is read or refused as invalid_request', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 60, size: 'max' }), (value) => {
      try {
        digestsOf(`sha-256=${value}`, 'Content-Digest');
      } catch (error) {
        expect(error).toMatchObject({ code: 'invalid_request' });
      }
    }),
  );
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { GatewayError } from '../../../src/domain/errors.ts';
import { namedTarget, rawPathOf, routedUrl } from '../../../src/http/request-target.ts';

test('the router never sees a name', () => {
  expect(routedUrl('/v1/files/demo/a%2f..%2fb?x=1')).toBe('/v1/files/-/-?x=1');
  expect(routedUrl('/v1/files/demo/d/')).toBe('/v1/files/-/-/');
  expect(routedUrl('/v1/files/demo/')).toBe('/v1/files/-/-/');
  expect(routedUrl('/v1/files/demo')).toBe('/v1/files/demo');
  expect(routedUrl('/v1/locks/demo/a/b')).toBe('/v1/locks/-/-');
  expect(routedUrl('/v1/admin/fences/rebase')).toBe('/v1/admin/fences/rebase');
  expect(routedUrl('/v1/leases/%ff')).toBe('/-');
  expect(routedUrl('http://host:1/v1/files/demo/a?q')).toBe('/v1/files/-/-?q');
});

test('absolute-form and queries are taken off the path', () => {
  expect(rawPathOf('https://h/p/q?r#s')).toBe('/p/q');
  expect(rawPathOf('http://h')).toBe('/');
  expect(rawPathOf('/a?b/c')).toBe('/a');
});

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this looks for
const ILLEGAL = /[/\\\u0000-\u001f\u007f]|^\.{0,2}$|\p{Surrogate}/u;

test('any legal name survives the way through a URL, exactly once decoded', () => {
  const segment = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 40, size: 'max' })
    .filter((text) => !ILLEGAL.test(text) && Buffer.byteLength(text) <= 255);
  fc.assert(
    fc.property(fc.array(segment, { minLength: 1, maxLength: 5 }), fc.boolean(), (segments, directory) => {
      const url = `/v1/files/demo/${segments.map(encodeURIComponent).join('/')}${directory ? '/' : ''}`;
      expect(namedTarget(url)).toEqual({ volume: 'demo', segments, directory });
    }),
  );
});

test('the name of a volume is decoded once, too (RFC 3986, 2.3), and is none when anything else comes out', () => {
  expect(namedTarget('/v1/files/%64em%6f/a')).toMatchObject({ volume: 'demo' });
  for (const name of ['%2e%2e', 'de%2fmo', '%2564emo', '%ff', '']) {
    expect(() => namedTarget(`/v1/files/${name}/a`), name).toThrow(expect.objectContaining({ code: 'volume_not_found' }));
  }
});

test('whatever is sent, a target is canonical or refused', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('/', '.', '%', '2', 'e', 'f', '\\', 'a', '\u0000', '5', 'c', '?', '#'), maxLength: 30, size: 'max' }),
      (tail) => {
        try {
          const { segments } = namedTarget(`/v1/files/demo/${tail}`);
          for (const segment of segments) expect(segment).not.toMatch(ILLEGAL);
        } catch (error) {
          expect(error).toBeInstanceOf(GatewayError);
          expect(error).toMatchObject({ code: 'invalid_path' });
        }
      },
    ),
    { numRuns: 2_000 },
  );
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { boundaryOf, wellDelimited } from '../../../src/http/form-delimiters.ts';

const BOUNDARY = 'b-o';
const FORM = `--${BOUNDARY}\r\nhead\r\n\r\nbody\r\n--${BOUNDARY}\r\nhead\r\n\r\n\r\n--${BOUNDARY}--\r\nafterwards\r\n--${BOUNDARY}?`;
const MALFORMED = ['X', ' ', '  \r\n', '-\r\n', '\r\r', '\n'].map(
  (garbage) => `--${BOUNDARY}\r\n\r\none\r\n--${BOUNDARY}${garbage}\r\ntwo\r\n--${BOUNDARY}--\r\n`,
);

async function passed(form: string, cuts: readonly number[]): Promise<string> {
  const places = [0, ...cuts.map((cut) => cut % form.length), form.length].toSorted((a, b) => a - b);
  const chunks = places.slice(1).map((end, index) => Buffer.from(form.slice(places[index], end), 'latin1'));
  const whole: Buffer[] = [];
  for await (const chunk of wellDelimited(asStream(chunks), BOUNDARY)) whole.push(Buffer.from(chunk));
  return Buffer.concat(whole).toString('latin1');
}

async function* asStream(chunks: readonly Buffer[]): AsyncGenerator<Buffer> {
  yield* chunks;
}

const CUTS = fc.array(fc.nat(), { maxLength: 12, size: 'max' });

test('a form is passed on unchanged, wherever it is cut; what follows its end is not looked at', async () => {
  await fc.assert(
    fc.asyncProperty(CUTS, async (cuts) => {
      expect(await passed(FORM, cuts)).toBe(FORM);
    }),
  );
});

test('a boundary that is followed by anything else on its line is refused, wherever the form is cut', async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...MALFORMED), CUTS, async (form, cuts) => {
      await expect(passed(form, cuts)).rejects.toMatchObject({ code: 'invalid_request' });
    }),
  );
});

test('the boundary is read with and without quotes, whatever the case of its name', () => {
  expect(boundaryOf('multipart/form-data; boundary="a b"')).toBe('a b');
  expect(boundaryOf('Multipart/Form-Data; charset=x; BOUNDARY=ab')).toBe('ab');
  expect([boundaryOf('multipart/form-data'), boundaryOf('nonsense'), boundaryOf(undefined)]).toEqual([null, null, null]);
});

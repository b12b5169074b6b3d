import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { type BodySource, bodySource } from '../../../src/client/body-source.ts';
import { multipartBody } from '../../../src/client/multipart-body.ts';

async function textOf(source: BodySource): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of source.open()) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

describe('a body', () => {
  it('of text or bytes has its length in bytes, and comes as often as it is wanted', async () => {
    const text = await bodySource('grün');
    expect(text.sizeBytes).toBe(5);
    expect([await textOf(text), await textOf(text), text.available()]).toEqual(['grün', 'grün', true]);
    expect((await bodySource(new Uint8Array(3))).sizeBytes).toBe(3);
    expect(await textOf(await bodySource(''))).toBe('');
  });

  it('of a local file is as long as the file was when it was asked for', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'fencegate-body-'));
    const path = join(directory, 'file');
    await writeFile(path, 'twelve bytes');
    const source = await bodySource({ path });
    expect(source.sizeBytes).toBe(12);
    await writeFile(path, 'twelve bytes and more');
    expect(await textOf(source)).toBe('twelve bytes');
    await writeFile(path, 'fewer');
    await expect(textOf(source)).rejects.toThrow('after 5 of 12 bytes');
    await writeFile(path, '');
    expect(await textOf(await bodySource({ path }))).toBe('');
    await rm(directory, { recursive: true });
  });

  it('of a stream comes once, of a function each time', async () => {
    const stream = await bodySource(Readable.from(['a', 'b']));
    expect([stream.sizeBytes, stream.available()]).toEqual([null, true]);
    expect(await textOf(stream)).toBe('ab');
    expect(stream.available()).toBe(false);
    const made = await bodySource(() => Readable.from(['a', 'b']), 2);
    expect([made.sizeBytes, await textOf(made), await textOf(made), made.available()]).toEqual([2, 'ab', 'ab', true]);
  });

  it('of several files is a form whose length is known when theirs are', async () => {
    const known = await multipartBody([
      { name: 'a "b".csv', body: 'one' },
      { name: 'c\r\nX: y', body: Readable.from(['two']), sizeBytes: 3 },
    ]);
    const { contentType, source } = known;
    const boundary = contentType.replace('multipart/form-data; boundary=', '');
    const text = await textOf(source);
    expect(Buffer.byteLength(text)).toBe(source.sizeBytes);
    expect(text.split(`--${boundary}`)).toHaveLength(4);
    expect(text).toContain('filename="a \\"b\\".csv"');
    expect(text).toContain('filename="c%0D%0AX: y"');
    expect(source.available()).toBe(false);
    expect((await multipartBody([{ name: 'a', body: Readable.from(['x']) }])).source.sizeBytes).toBeNull();
  });
});

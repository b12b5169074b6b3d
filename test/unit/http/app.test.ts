import { afterAll, beforeAll, expect, test } from 'vitest';
import { startHttp, type TestServer } from '../../support/http-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startHttp();
});
afterAll(() => server.close());

test('a PUT reaches the writer with its bytes and is answered as the writer says', async () => {
  const answer = await server.fetch('/v1/files/demo/a%20b.txt', { method: 'PUT', body: 'hello', headers: { 'X-Fencing-Token': '4103' } });
  expect(answer.status).toBe(201);
  expect(answer.headers.get('etag')).toBe('"1-2-3"');
  expect(await answer.json()).toMatchObject({ resource: 'demo/a b.txt', size_bytes: 5 });
  expect(server.deps.writer.calls.at(-1)?.bytes.toString()).toBe('hello');
});

test('the OpenAPI document is served', async () => {
  const answer = await server.fetch('/openapi.json');
  expect(answer.status).toBe(200);
  const document = await answer.json() as { paths: Record<string, object> };
  expect(Object.keys(document.paths)).toContain('/v1/files/{volume}/{path}');
});

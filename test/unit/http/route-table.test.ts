import { expect, test } from 'vitest';
import { RouteTable } from '../../../src/http/route-table.ts';

test('methods of all routes of a path, a fixed path before one with parameters', () => {
  const table = new RouteTable();
  table.add('/v1/a/:id', ['GET']);
  table.add('/v1/a/:id', ['DELETE']);
  table.add('/v1/a/fixed', ['POST']);
  table.add('/docs/*', ['GET']);
  expect(table.allowed('/v1/a/7')).toEqual(['DELETE', 'GET', 'OPTIONS']);
  expect(table.allowed('/v1/a/fixed')).toEqual(['OPTIONS', 'POST']);
  expect(table.allowed('/docs/x/y')).toEqual(['GET', 'OPTIONS']);
  for (const path of ['/v1/a', '/v1/a/', '/v1/a/7/b', '/']) expect(table.allowed(path)).toEqual([]);
});

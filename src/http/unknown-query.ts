import type { RouteOptions } from 'fastify';
import { NoQuery } from './schemas/common.ts';

/**
 * A parameter that nobody reads is a mistake of whoever sent it: a limit that is passed over is worse than one that is refused. Files and
 * pages are read as everywhere on the web, with whatever a link has behind its question mark.
 */
export function refuseUnknownQuery(route: RouteOptions): void {
  if (!route.url.startsWith('/v1/') || route.url.startsWith('/v1/files/') || route.schema === undefined) return;
  route.schema.querystring ??= NoQuery;
}

import { Type } from '@sinclair/typebox';
import { ERROR_CODES, type ErrorCode, refuse } from '../../domain/errors.ts';
import { page, text } from '../html.ts';
import { answers } from '../schemas/common.ts';
import { STATUS_TABLE } from '../status.ts';
import type { TypedApp } from '../typed-app.ts';

const HTML = 'text/html; charset=utf-8';
const PAGE_HEADERS = {
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
} as const;
const html = { 200: { description: 'A page', schema: Type.String(), mediaType: 'text/html' } };

/** Pages for people. They hold nothing that needs an identity. */
export function pageRoutes(app: TypedApp): void {
  app.get(
    '/',
    {
      config: { access: 'open' },
      schema: { tags: ['pages'], summary: 'What this is', response: answers(html, [], { open: true }) },
    },
    async (_request, reply) => reply.headers(PAGE_HEADERS).type(HTML).send(START_PAGE),
  );

  app.get(
    '/docs/problems/:code',
    {
      config: { access: 'open' },
      schema: {
        tags: ['pages'],
        summary: 'What a problem type means',
        params: Type.Object({ code: Type.String() }),
        response: answers(html, ['not_found'], { open: true }),
      },
    },
    async (request, reply) => {
      const code = ERROR_CODES.find((known) => known === request.params.code);
      if (code === undefined) throw refuse('not_found', 'There is no problem of this name.');
      return reply.headers(PAGE_HEADERS).type(HTML).send(problemPage(code));
    },
  );
}

function problemPage(code: ErrorCode): string {
  const { status, title, advice } = STATUS_TABLE[code];
  return page(title, `<h1>${text(title)}</h1><p><code>${text(code)}</code>, HTTP status ${status}</p><p>${text(advice)}</p>`);
}

const START_PAGE = page(
  'Fencegate',
  `<h1>Fencegate</h1>
<p>A write proxy in front of file and NFS volumes: every write takes a lock lease and carries a fencing token, and a writer that has lost its lease cannot touch the file again.</p>
<ul>
<li><a href="/docs">API reference</a> (<a href="/openapi.json">OpenAPI</a>)</li>
<li><a href="/readyz">State of journal, coordinator and volumes</a></li>
<li><a href="/v1/volumes">Volumes</a></li>
<li><a href="/v1/locks">Locks</a></li>
</ul>`,
);

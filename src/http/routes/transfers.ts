import { tokenMember } from '../header-values.ts';
import { answers } from '../schemas/common.ts';
import { EnclosingHeaders, FILE_ANSWER_HEADERS, FileAnswerBody, TransferBody, WRITE_CODES } from '../schemas/files.ts';
import type { RouteOptions, TypedApp } from '../typed-app.ts';
import { envelopeOf, handOver, resourceInBody, sendAnswer } from '../write-request.ts';

const written = (description: string) => ({ description, schema: FileAnswerBody, headers: FILE_ANSWER_HEADERS });

/** MOVE and COPY: two names, each with its own token, or one lease over both. */
export function transferRoutes(app: TypedApp, { deps }: RouteOptions): void {
  for (const [url, action, summary] of [
    ['/v1/moves', 'move', 'Move a file within its volume'],
    ['/v1/copies', 'copy', 'Copy a file'],
  ] as const) {
    app.post(
      url,
      {
        config: { access: 'write', action, namedBy: ['to'], newWork: true, documentedHeaders: EnclosingHeaders },
        schema: {
          tags: ['files'],
          summary,
          body: TransferBody,
          response: answers({ 200: written('The target was replaced'), 201: written('The target is new') }, [
            ...WRITE_CODES,
            'already_exists',
            'same_resource',
            'multiple_links',
            'body_too_large',
            'unsupported_media_type',
          ]),
        },
      },
      async (request, reply) => {
        const { body } = request;
        // A copy only reads its source; a move takes the name away.
        const from = resourceInBody(deps, request, body.from, action === 'copy' ? 'read' : 'write');
        const to = resourceInBody(deps, request, body.to);
        // The record of a refusal is about the name that would have been written.
        request.state.subject = { volume: to.volume, path: to.path };
        const envelope = envelopeOf(deps, request, reply, url);
        const tokens = { fromToken: tokenMember(body.from_token, 'from_token'), toToken: tokenMember(body.to_token, 'to_token') };
        const transfer = { from, to, overwrite: body.overwrite ?? false, ...tokens };
        handOver(request);
        return sendAnswer(reply, action === 'move' ? await deps.writer.moveFile(envelope, transfer) : await deps.writer.copyFile(envelope, transfer));
      },
    );
  }
}

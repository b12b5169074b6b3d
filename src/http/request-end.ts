import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

/** What is shown for a request whose client went away before the answer was out: nobody got a status. nginx made the number known. */
export const CLIENT_WENT_AWAY = 499;

/**
 * Tells the end of each request, also of one whose client went away: the framework's `onResponse` is called for whole answers only.
 * @param status of the answer, or `CLIENT_WENT_AWAY`.
 */
export function onRequestEnd(app: FastifyInstance, listener: (request: FastifyRequest, reply: FastifyReply, status: number) => void): void {
  app.addHook('onRequest', (request, reply, done) => {
    reply.raw.once('close', () => listener(request, reply, reply.raw.writableFinished ? reply.statusCode : CLIENT_WENT_AWAY));
    done();
  });
}

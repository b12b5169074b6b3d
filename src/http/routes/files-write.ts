import { refuse } from '../../domain/errors.ts';
import { judgeNoContent } from '../digest-headers.ts';
import { mediaTypeOf, updateRange, uploadOffset } from '../envelope.ts';
import { announcesBody } from '../exchange.ts';
import { principalOf } from '../request-state.ts';
import { answers } from '../schemas/common.ts';
import {
  BODY_CODES,
  EnclosingHeaders,
  FILE_ANSWER_HEADERS,
  FileAnswerBody,
  FileParams,
  PatchHeaders,
  UploadAnswerBody,
  WRITE_ANSWER_HEADERS,
  WRITE_CODES,
  WriteHeaders,
} from '../schemas/files.ts';
import type { RouteOptions, TypedApp } from '../typed-app.ts';
import { MultipartUpload } from '../upload-body.ts';
import { envelopeOf, handOver, resourceOfRoute, sendAnswer, streamedBody, targetOf } from '../write-request.ts';

const FILE = '/v1/files/:volume/:path';
const DIRECTORY = `${FILE}/`;
const PARTIAL_TYPES: readonly string[] = ['', 'application/x-sabredav-partialupdate', 'application/octet-stream'];

const written = (description: string) => ({ description, schema: FileAnswerBody, headers: FILE_ANSWER_HEADERS });
const gone = (description: string) => ({ description, schema: null, headers: WRITE_ANSWER_HEADERS });

/** The verbs that change a volume. Each names the resource and nothing else; the write gateway decides. */
export function writeRoutes(app: TypedApp, options: RouteOptions): void {
  putRoute(app, options);
  patchRoute(app, options);
  removalRoutes(app, options);
  directoryRoute(app, options);
  uploadRoute(app, options);
}

function putRoute(app: TypedApp, { deps, slots }: RouteOptions): void {
  app.put(
    FILE,
    {
      config: { access: 'write', action: 'put', newWork: true, streams: true, documentedHeaders: WriteHeaders, bodyTypes: ['*/*'] },
      schema: {
        tags: ['files'],
        summary: 'Create or replace a whole file',
        params: FileParams,
        response: answers({ 200: written('Replaced'), 201: written('Created') }, [...WRITE_CODES, ...BODY_CODES]),
      },
    },
    async (request, reply) => {
      const resource = resourceOfRoute(deps, request, 'write');
      if (request.headers['content-range'] !== undefined)
        throw refuse('invalid_request', 'A PUT writes the whole file; for a range use PATCH with X-Update-Range.');
      const envelope = envelopeOf(deps, request, reply, resource.name);
      const body = streamedBody(deps, request, reply, envelope);
      return sendAnswer(
        reply,
        await slots.run(principalOf(request), () => {
          handOver(request);
          return deps.writer.putFile(envelope, resource, body);
        }),
      );
    },
  );
}

function patchRoute(app: TypedApp, { deps, slots }: RouteOptions): void {
  app.patch(
    FILE,
    {
      config: { access: 'write', action: 'patch', newWork: true, streams: true, documentedHeaders: PatchHeaders, bodyTypes: PARTIAL_TYPES.slice(1) },
      schema: {
        tags: ['files'],
        summary: 'Write a range, or append',
        params: FileParams,
        response: answers({ 200: written('Written'), 201: written('An append made the file') }, [
          ...WRITE_CODES,
          ...BODY_CODES,
          'range_length_mismatch',
          'offset_mismatch',
          'range_not_satisfiable',
          'multiple_links',
        ]),
      },
    },
    async (request, reply) => {
      const resource = resourceOfRoute(deps, request, 'write');
      if (!PARTIAL_TYPES.includes(mediaTypeOf(request.state.contentType)))
        throw refuse('unsupported_media_type', 'PATCH takes application/x-sabredav-partialupdate or application/octet-stream.');
      const range = updateRange(request.raw);
      const offset = uploadOffset(request.raw);
      const envelope = envelopeOf(deps, request, reply, resource.name);
      const body = streamedBody(deps, request, reply, envelope);
      return sendAnswer(
        reply,
        await slots.run(principalOf(request), () => {
          handOver(request);
          return deps.writer.patchFile(envelope, resource, range, offset, body);
        }),
      );
    },
  );
}

function removalRoutes(app: TypedApp, { deps }: RouteOptions): void {
  app.delete(
    FILE,
    {
      config: { access: 'write', action: 'delete', newWork: true, streams: true, documentedHeaders: EnclosingHeaders },
      schema: { tags: ['files'], summary: 'Delete a file', params: FileParams, response: answers({ 204: gone('Deleted') }, WRITE_CODES) },
    },
    async (request, reply) => {
      const resource = resourceOfRoute(deps, request, 'write');
      judgeNoContent(request.raw);
      const envelope = envelopeOf(deps, request, reply, resource.name);
      handOver(request);
      return sendAnswer(reply, await deps.writer.deleteFile(envelope, resource));
    },
  );

  app.delete(
    DIRECTORY,
    {
      config: { access: 'write', action: 'delete', newWork: true, streams: true, documentedHeaders: EnclosingHeaders },
      schema: {
        tags: ['files'],
        summary: 'Remove an empty directory',
        params: FileParams,
        response: answers({ 204: gone('Removed') }, [...WRITE_CODES, 'directory_not_empty']),
      },
    },
    async (request, reply) => {
      const resource = resourceOfRoute(deps, request, 'write');
      judgeNoContent(request.raw);
      const envelope = envelopeOf(deps, request, reply, `${resource.name}/`);
      handOver(request);
      return sendAnswer(reply, await deps.writer.removeDirectory(envelope, resource));
    },
  );
}

function directoryRoute(app: TypedApp, { deps }: RouteOptions): void {
  app.put(
    DIRECTORY,
    {
      config: { access: 'write', action: 'mkdir', newWork: true, streams: true, documentedHeaders: EnclosingHeaders },
      schema: {
        tags: ['files'],
        summary: 'Make a directory',
        params: FileParams,
        response: answers({ 201: gone('Made'), 204: gone('It was there') }, WRITE_CODES),
      },
    },
    async (request, reply) => {
      const resource = resourceOfRoute(deps, request, 'write');
      if (announcesBody(request.raw)) throw refuse('invalid_request', 'A directory has no bytes: without the trailing slash the name is a file.');
      judgeNoContent(request.raw);
      const envelope = envelopeOf(deps, request, reply, `${resource.name}/`);
      handOver(request);
      return sendAnswer(reply, await deps.writer.makeDirectory(envelope, resource));
    },
  );
}

function uploadRoute(app: TypedApp, { deps, slots }: RouteOptions): void {
  app.post(
    DIRECTORY,
    {
      config: {
        access: 'write',
        action: 'upload',
        newWork: true,
        streams: true,
        documentedHeaders: EnclosingHeaders,
        bodyTypes: ['multipart/form-data'],
      },
      schema: {
        tags: ['files'],
        summary: 'Upload several files, all or nothing',
        params: FileParams,
        response: answers(
          { 200: { ...written('Written'), schema: UploadAnswerBody }, 201: { ...written('All of them are new'), schema: UploadAnswerBody } },
          [...WRITE_CODES, ...BODY_CODES],
        ),
      },
    },
    async (request, reply) => {
      // Files may be uploaded into the root of a volume too, which is no resource.
      const { target, resource } = targetOf(deps, request, 'write');
      const envelope = envelopeOf(deps, request, reply, `${target.volume}/${resource?.path ?? ''}/`);
      if (!request.isMultipart()) throw refuse('unsupported_media_type', 'Several files are uploaded as multipart/form-data.');
      const body = streamedBody(deps, request, reply, envelope);
      const upload = new MultipartUpload(request, body, deps.clock, deps.settings.bodyBytesMax);
      return sendAnswer(
        reply,
        await slots.run(principalOf(request), () => {
          handOver(request);
          return deps.writer.uploadFiles(envelope, target.volume, resource, upload);
        }),
      );
    },
  );
}

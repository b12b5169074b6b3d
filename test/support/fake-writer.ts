import { createHash } from 'node:crypto';
import type { GatewayError } from '../../src/domain/errors.ts';
import type { Resource } from '../../src/domain/resource.ts';
import type { Body, UploadBody, WriteAnswer, WriteEnvelope, Writer } from '../../src/domain/write.ts';

export interface WriterCall {
  readonly verb: keyof Writer;
  readonly envelope: WriteEnvelope;
  readonly resource: Resource | null;
  readonly bytes: Buffer;
  readonly files: readonly { readonly filename: string | undefined; readonly bytes: Buffer }[];
  readonly extra: unknown;
}

/** A writer that stores nothing but what it was told. `refusal` is thrown before the body is opened, as admission does. */
export class FakeWriter implements Writer {
  readonly calls: WriterCall[] = [];
  refusal: GatewayError | null = null;
  answer: WriteAnswer | null = null;
  /** Resolves when the body is about to be opened. */
  onAdmitted: () => Promise<void> = async () => undefined;
  onFailure: (error: unknown) => void = () => undefined;
  onChunk: (chunk: Uint8Array) => void = () => undefined;

  async putFile(envelope: WriteEnvelope, resource: Resource, body: Body) {
    return this.#stream('putFile', envelope, resource, body, null);
  }
  async patchFile(envelope: WriteEnvelope, resource: Resource, target: unknown, offset: number | null, body: Body) {
    return this.#stream('patchFile', envelope, resource, body, { target, offset });
  }
  async deleteFile(envelope: WriteEnvelope, resource: Resource) {
    return this.#plain('deleteFile', envelope, resource, 204);
  }
  async makeDirectory(envelope: WriteEnvelope, resource: Resource) {
    return this.#plain('makeDirectory', envelope, resource, 201);
  }
  async removeDirectory(envelope: WriteEnvelope, resource: Resource) {
    return this.#plain('removeDirectory', envelope, resource, 204);
  }
  async moveFile(envelope: WriteEnvelope, request: { readonly to: Resource }) {
    return this.#plain('moveFile', envelope, request.to, 201, request);
  }
  async copyFile(envelope: WriteEnvelope, request: { readonly to: Resource }) {
    return this.#plain('copyFile', envelope, request.to, 201, request);
  }

  async uploadFiles(envelope: WriteEnvelope, volume: string, directory: Resource | null, body: UploadBody): Promise<WriteAnswer> {
    await this.#admit();
    const files: { filename: string | undefined; bytes: Buffer }[] = [];
    try {
      for await (const part of body.open()) files.push({ filename: part.filename, bytes: await this.#collect(part.body) });
    } catch (error) {
      this.onFailure(error);
      throw error;
    }
    this.calls.push({ verb: 'uploadFiles', envelope, resource: directory, bytes: Buffer.alloc(0), files, extra: { volume } });
    return this.answer ?? { status: 201, headers: headersOf(null), body: { operation_id: 'op_1', files: [] }, replayed: false };
  }

  async #stream(verb: keyof Writer, envelope: WriteEnvelope, resource: Resource, body: Body, extra: unknown): Promise<WriteAnswer> {
    await this.#admit();
    let bytes: Buffer;
    try {
      bytes = await this.#collect(body.open());
    } catch (error) {
      this.onFailure(error);
      throw error;
    }
    this.calls.push({ verb, envelope, resource, bytes, files: [], extra });
    const digest = createHash('sha256').update(bytes).digest('hex');
    return this.answer ?? { status: 201, headers: headersOf('"1-2-3"'), body: written(resource, bytes.byteLength, digest), replayed: false };
  }

  async #plain(verb: keyof Writer, envelope: WriteEnvelope, resource: Resource, status: number, extra: unknown = null): Promise<WriteAnswer> {
    await this.#admit();
    this.calls.push({ verb, envelope, resource, bytes: Buffer.alloc(0), files: [], extra });
    return (
      this.answer ?? {
        status,
        headers: headersOf(null),
        body: verb === 'moveFile' || verb === 'copyFile' ? written(resource, 1, 'ab'.repeat(32)) : null,
        replayed: false,
      }
    );
  }

  async #admit(): Promise<void> {
    if (this.refusal !== null) throw this.refusal;
    await this.onAdmitted();
  }

  async #collect(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
    const all: Uint8Array[] = [];
    for await (const chunk of chunks) {
      this.onChunk(chunk);
      all.push(Buffer.from(chunk));
    }
    return Buffer.concat(all);
  }
}

function headersOf(etag: string | null): Record<string, string> {
  return { 'X-Fencing-Token': '4103', 'X-Operation-Id': 'op_1', ...(etag === null ? {} : { ETag: etag }) };
}

function written(resource: Resource, size: number, sha256: string): object {
  return {
    resource: resource.name,
    volume: resource.volume,
    path: resource.path,
    size_bytes: size,
    etag: '"1-2-3"',
    digest: { 'sha-256': sha256 },
    fencing_token: '4103',
    lease_ref: 'lr_1',
    operation_id: 'op_1',
    durability: 'synced',
    fence_level: 'incarnation',
  };
}

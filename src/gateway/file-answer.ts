import type { FencingToken } from '../domain/fencing-token.ts';
import { etagOf, type FileFacts } from '../domain/file-facts.ts';
import type { StoredAnswer } from '../domain/journal.ts';
import type { Resource } from '../domain/resource.ts';
import type { Volume } from '../domain/volume.ts';
import type { FileAnswer } from '../domain/write.ts';
import type { Operation } from './operation.ts';

export interface WrittenFile {
  readonly resource: Resource;
  readonly facts: FileFacts;
  readonly sha256: string | null;
  readonly token: FencingToken;
}

/** The answer object of a written file (`http-api.md`, Files). */
export function fileAnswer(operation: Operation, volume: Volume, file: WrittenFile): FileAnswer {
  return {
    resource: file.resource.name,
    volume: file.resource.volume,
    path: file.resource.path,
    size_bytes: file.facts.sizeBytes,
    etag: etagOf(file.facts),
    digest: file.sha256 === null ? null : { 'sha-256': file.sha256 },
    fencing_token: file.token.toString(),
    lease_ref: operation.leaseRefOf(file.resource) ?? '',
    operation_id: operation.id,
    durability: 'synced',
    fence_level: volume.fenceLevel,
  };
}

/** 201 or 200 with the headers that every write answer has, 204 included. */
export function answerWithFile(operation: Operation, volume: Volume, status: number, file: WrittenFile): StoredAnswer {
  const headers: Record<string, string> = { ...answerHeaders(operation, file.token), etag: etagOf(file.facts) };
  if (file.sha256 !== null) headers['repr-digest'] = `sha-256=:${Buffer.from(file.sha256, 'hex').toString('base64')}:`;
  return { status, headers, body: fileAnswer(operation, volume, file) };
}

export function answerHeaders(operation: Operation, token: FencingToken): Record<string, string> {
  return { 'x-fencing-token': token.toString(), 'x-operation-id': operation.id };
}

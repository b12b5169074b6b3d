import type { Entry, Listing } from './contract/answers.ts';
import { FileDownload } from './download.ts';
import { pages } from './pages.ts';
import { directoryName, resourceUrlPath } from './resource-path.ts';
import { retrying } from './retrying.ts';
import type { Transport } from './transport.ts';
import type { Progress } from './upload-exchange.ts';

export interface GetOptions {
  /** The first byte, and the last one, included: `{ start: 0, end: 99 }` is 100 bytes. Without `end`: to the end. */
  readonly range?: { readonly start: number; readonly end?: number };
  /** Only if the file still has this ETag. Else `precondition_failed`. */
  readonly ifMatch?: string;
  /** When the file still has this ETag, no bytes come and `status` is 304. */
  readonly ifNoneMatch?: string;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
}

const FILES = '/v1/files';
const NOT_MODIFIED = 304;

/** Reading needs no lease, and waits for nobody. */
export class FileReads {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async get(resource: string, options: GetOptions): Promise<FileDownload> {
    const { range, ifMatch, ifNoneMatch, signal } = options;
    const headers: Record<string, string> = { 'accept-encoding': 'identity' };
    if (range !== undefined) headers['range'] = `bytes=${range.start}-${range.end ?? ''}`;
    if (ifMatch !== undefined) headers['if-match'] = ifMatch;
    if (ifNoneMatch !== undefined) headers['if-none-match'] = ifNoneMatch;
    const path = resourceUrlPath(FILES, resource);
    const attempt = () => this.#transport.open({ method: 'GET', path, headers, signal }, [NOT_MODIFIED]);
    return new FileDownload(await retrying(this.#transport, attempt, { keyed: true, signal }), this.#transport, options);
  }

  list(directory: string, signal: AbortSignal | undefined): AsyncIterable<Entry> {
    const path = resourceUrlPath(FILES, directoryName(directory));
    return pages(
      (cursor) => this.#transport.repeated<Listing>({ method: 'GET', path, query: { cursor }, signal }, { keyed: true }),
      (page) => page.entries,
    );
  }
}

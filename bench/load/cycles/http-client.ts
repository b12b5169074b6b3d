import { Client, type Dispatcher } from 'undici';

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** One keep-alive connection whose answers are read. undici, since most of a cycle is waiting and its own cost is small. */
export class HttpClient {
  readonly #client: Client;

  constructor(port: number) {
    // A waiter is answered when it is its turn, however long that takes.
    this.#client = new Client(`http://127.0.0.1:${port}`, { pipelining: 1, headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: 600_000 });
  }

  /** @throws Error when the status is not one of `due`. */
  async send(
    method: string,
    path: string,
    due: readonly number[],
    body: string | Buffer | null = null,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<HttpAnswer> {
    // WebDAV's methods are not in the type, and go over the wire like any other.
    const answer = await this.#client.request({ method: method as Dispatcher.HttpMethod, path, body, headers: { ...headers } });
    const text = await answer.body.text();
    if (!due.includes(answer.statusCode))
      throw new Error(`${method} ${path} was answered ${answer.statusCode} where ${due.join(' or ')} was due: ${text.slice(0, 200)}`);
    return { status: answer.statusCode, headers: answer.headers, text };
  }

  async json(method: string, path: string, due: readonly number[], value: unknown): Promise<Readonly<Record<string, unknown>>> {
    const { text } = await this.send(method, path, due, JSON.stringify(value), { 'content-type': 'application/json' });
    return parsed(text);
  }

  close(): Promise<void> {
    return this.#client.destroy();
  }
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null) throw new Error(`not a JSON object: ${text.slice(0, 80)}`);
  return value as Readonly<Record<string, unknown>>;
}

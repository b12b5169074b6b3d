import type { RawAnswer, RawConnection } from './raw-http.ts';

/** The head of a request, for a raw connection. */
export function head(line: string, ...headers: string[]): string {
  return `${[`${line} HTTP/1.1`, 'Host: localhost', ...headers].join('\r\n')}\r\n\r\n`;
}

/** Sends one whole request and reads its answer. */
export async function ask(connection: RawConnection, request: string | Uint8Array): Promise<RawAnswer> {
  connection.send(request);
  return connection.answer();
}

/** Status, and the code of the problem document if it is one. */
export function rawVerdict({ status, body }: RawAnswer): string {
  return status < 400 ? String(status) : `${status} ${(JSON.parse(body) as { code: string }).code}`;
}

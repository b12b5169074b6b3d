import type { CycleClient } from './cycle-client.ts';
import { HttpClient } from './http-client.ts';

const LOCK_BODY =
  '<?xml version="1.0" encoding="utf-8"?><D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype><D:owner>bench</D:owner></D:lockinfo>';

/** What a WebDAV client does to replace a file that nobody else may touch meanwhile (RFC 4918). */
export function webdavCycle(port: number, path: string, bodyBytes: number): CycleClient {
  const http = new HttpClient(port);
  const body = Buffer.alloc(bodyBytes, 'the bytes of a benchmark say nothing. ');
  return {
    run: async () => {
      const locked = await http.send('LOCK', path, [200, 201], LOCK_BODY, { 'content-type': 'application/xml', depth: '0', timeout: 'Second-60' });
      const token = lockToken(locked.headers['lock-token']);
      await http.send('PUT', path, [200, 201, 204], body, { if: `(${token})`, 'content-type': 'application/octet-stream' });
      await http.send('UNLOCK', path, [204], null, { 'lock-token': token });
      return null;
    },
    close: () => http.close(),
  };
}

function lockToken(header: string | string[] | undefined): string {
  if (typeof header !== 'string') throw new Error('a LOCK was answered without a Lock-Token');
  return header.startsWith('<') ? header : `<${header}>`;
}

import type { ClientRequest } from 'node:http';
import type { TLSSocket } from 'node:tls';

/** Our own name for it, beside those of Node and OpenSSL. */
const CODE = 'CERTIFICATE_NOT_ACCEPTED';
const CUT: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE']);
const DROPS_MAX = 2;

/**
 * Whether connections are closed because of our own certificate. A server on Node says nothing when that comes from an authority that it does not know:
 * it closes the connection as soon as that stands, as one that is killed just then. Two in a row, of which the second was begun after the first had
 * ended, are no restart: after one nobody listens for a while, or a request is answered.
 */
export class CertificateDrops {
  #drops = 0;

  /** Follows a request on its way. The returned function says what its error is. */
  follow(request: ClientRequest): (error: Error) => Error {
    const before = this.#drops;
    let isSecure = false;
    request.on('socket', (socket) => {
      // Only of a connection that is made for this request.
      (socket as TLSSocket).once('secureConnect', () => {
        isSecure = true;
      });
    });
    request.on('response', () => {
      this.#drops = 0;
    });
    return (error) => {
      if (!isSecure || !('code' in error) || !CUT.has(error.code)) {
        this.#drops = 0;
        return error;
      }
      if (before !== this.#drops) return error;
      this.#drops += 1;
      return this.#drops < DROPS_MAX ? error : Object.assign(new Error('the certificate is not accepted', { cause: error }), { code: CODE });
    };
  }
}

export interface Answer {
  readonly status: number;
  /** The server will close the connection after this answer. */
  readonly closes: boolean;
}

const HEAD_END = '\r\n\r\n';
const HEAD_BYTES_MAX = 16_384;
const LENGTH = /\r\ncontent-length: *(\d+)/i;
const CHUNKED = /\r\ntransfer-encoding:[^\r]*chunked/i;
const CLOSES = /\r\nconnection: *close/i;

/** Reads HTTP/1.1 answers from a stream of bytes and throws the bodies away. Answers without a length (chunked) are refused: no peer here sends them. */
export class AnswerReader {
  #head = '';
  #bodyLeft = 0;
  #answer: Answer | null = null;

  /** @returns the answer that these bytes completed, interim ones (1xx) too. A client that does not pipeline gets at most a 100 and a final one at once. */
  feed(bytes: Buffer): readonly Answer[] {
    const complete: Answer[] = [];
    let at = 0;
    while (at < bytes.length) {
      if (this.#answer === null) {
        at = this.#readHead(bytes, at);
      } else {
        const taken = Math.min(this.#bodyLeft, bytes.length - at);
        this.#bodyLeft -= taken;
        at += taken;
      }
      if (this.#answer !== null && this.#bodyLeft === 0) {
        complete.push(this.#answer);
        this.#answer = null;
      }
    }
    return complete;
  }

  #readHead(bytes: Buffer, at: number): number {
    const text = this.#head + bytes.toString('latin1', at, at + HEAD_BYTES_MAX);
    const end = text.indexOf(HEAD_END);
    if (end < 0) {
      if (text.length > HEAD_BYTES_MAX) throw new Error('the head of an answer is too long');
      this.#head = text;
      return bytes.length;
    }
    const consumed = end + HEAD_END.length - this.#head.length;
    this.#head = '';
    this.#open(text.slice(0, end));
    return at + consumed;
  }

  #open(head: string): void {
    const status = Number(head.slice(9, 12));
    if (!head.startsWith('HTTP/1.1 ') || !Number.isInteger(status)) throw new Error(`not an HTTP/1.1 answer: ${head.slice(0, 80)}`);
    if (CHUNKED.test(head)) throw new Error('a chunked answer, which this driver does not read');
    const bodiless = status < 200 || status === 204 || status === 304;
    this.#bodyLeft = bodiless ? 0 : Number(LENGTH.exec(head)?.[1] ?? 0);
    this.#answer = { status, closes: CLOSES.test(head) };
  }
}

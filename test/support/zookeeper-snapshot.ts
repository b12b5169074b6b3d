import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { KNOWN } from './zookeeper-ensemble.ts';

/**
 * A node's sequence counter near its end: two thousand million children are made in no test, so the number is written into the
 * snapshot of a stopped server, of which the checksum is then made anew.
 */

/** After the data: the number of its ACL, czxid, mzxid, ctime, mtime, version; then cversion. */
const CVERSION_AFTER_DATA = 8 + 4 * 8 + 4;
/** A checksum and the text "/". */
const SEAL_BYTES = 8 + 4 + 1;

/** @param directory the server's data directory; it must not run, and must have been started without digests. */
export function writeCounter(directory: string, path: string, cversion: number): void {
  const folder = join(directory, KNOWN);
  const newest = readdirSync(folder)
    .filter((name) => name.startsWith('snapshot.'))
    .toSorted((a, b) => zxidOf(a) - zxidOf(b))
    .at(-1);
  if (newest === undefined) throw new Error('the server has left no snapshot');
  const file = join(folder, newest);
  const bytes = readFileSync(file);
  const name = Buffer.concat([int32(Buffer.byteLength(path)), Buffer.from(path)]);
  const at = bytes.indexOf(name);
  if (at < 0) throw new Error(`the snapshot does not know ${path}`);
  const data = at + name.length;
  const dataBytes = Math.max(0, bytes.readInt32BE(data));
  bytes.writeInt32BE(cversion, data + 4 + dataBytes + CVERSION_AFTER_DATA);
  const seal = bytes.length - SEAL_BYTES;
  bytes.writeBigInt64BE(BigInt(adler32(bytes.subarray(0, seal))), seal);
  writeFileSync(file, bytes);
}

function zxidOf(name: string): number {
  return Number.parseInt(name.slice(name.indexOf('.') + 1), 16);
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

/** RFC 1950. */
function adler32(bytes: Uint8Array): number {
  let [a, b] = [1, 0];
  for (const byte of bytes) {
    a = (a + byte) % 65_521;
    b = (b + a) % 65_521;
  }
  return b * 65_536 + a;
}

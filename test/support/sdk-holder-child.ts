import { createInterface } from 'node:readline';
import { FencegateClient, isFencegateError } from '../../src/client/index.ts';

/**
 * A process that holds a lease: `url resource ttlMs`. It begins an upload at once and sends a piece of it whenever it can; it says `sending TOKEN`
 * once bytes flow. At a line on its input it stops, and says what became of the upload, of a write afterwards, and of the lease.
 */
const [, , url = '', resource = '', ttlMs = ''] = process.argv;
const client = new FencegateClient({ url, clientId: 'zombie' });
const lease = await client.lease(resource, { ttlMs: Number(ttlMs) });

let told = false;
const input = createInterface({ input: process.stdin });
input.once('line', () => {
  told = true;
});

async function* pieces(): AsyncGenerator<Uint8Array> {
  for (;;) {
    yield Buffer.from('late ');
    await new Promise((resolve) => setTimeout(resolve, 20));
    if (told) return;
  }
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return 'done';
  } catch (thrown) {
    return isFencegateError(thrown) ? thrown.code : String(thrown);
  }
}

let said = false;
const upload = await codeOf(
  lease.put(resource, pieces(), {
    onProgress: ({ transferredBytes }) => {
      if (said || transferredBytes === 0) return;
      said = true;
      process.stdout.write(`sending ${lease.token}\n`);
    },
  }),
);
const after = await codeOf(lease.append(resource, 'later'));
const signal: unknown = lease.signal.reason;
process.stdout.write(`${JSON.stringify({ upload, after, state: lease.state, signal: isFencegateError(signal) ? signal.code : null })}\n`);
input.close();
await client.close();

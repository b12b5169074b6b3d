import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { docCommentExamples, markdownExamples, typedExamples } from '../support/code-examples.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CLIENT = join(ROOT, 'dist/client');
const run = promisify(execFile);

/** What the examples use and do not make. */
const EXAMPLE_NAMES = `
import { type ClientEnvironment, FencegateClient, type LeaseHandle, clientFromEnvironment, isFencegateError } from 'fencegate/client';
declare const client: FencegateClient;
declare const lease: LeaseHandle;
declare const environment: ClientEnvironment;
declare const error: unknown;
declare const bytes: Uint8Array, record: Uint8Array, a: string, b: string, input: string, invoice: object;
declare const signal: AbortSignal;
declare function close(text: string): string;
declare function draw(bytes: number): void;
declare function convertRates(input: string, options: { readonly signal: AbortSignal }): Promise<void>;
declare function pay(invoice: object, options: { readonly fencingToken: string }): Promise<void>;
`;

let consumer: string;

beforeAll(async () => {
  consumer = await newDirectory();
  await mkdir(join(consumer, 'node_modules'));
  await symlink(ROOT, join(consumer, 'node_modules/fencegate'));
  for (const name of ['@types', 'undici-types']) await symlink(join(ROOT, 'node_modules', name), join(consumer, 'node_modules', name));
  await writeFile(join(consumer, 'package.json'), '{"type":"module"}');
});

afterAll(() => removeDirectory(consumer));

describe('the package as it is shipped', () => {
  it('the client reaches nothing but itself and Node, in code and in types', () => {
    const files = readdirSync(CLIENT, { recursive: true, encoding: 'utf8' }).filter((name) => /\.(js|d\.ts)$/.test(name));
    const reached = files.flatMap((name) => {
      const text = readFileSync(join(CLIENT, name), 'utf8');
      return [...text.matchAll(/(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g)].map(([, target = '']) => {
        return target.startsWith('.') ? relative(CLIENT, resolve(dirname(join(CLIENT, name)), target)) : target;
      });
    });
    expect(files.length).toBeGreaterThan(20);
    expect(reached.filter((target) => target.startsWith('..') || (/^[@\w-]+(\/|$)/.test(target) && !/\.(js|ts)$/.test(target)))).toEqual([]);
  });

  it('types a program of somebody else, and every example of the comments and the guide, strictly', async () => {
    const sources = readdirSync(join(ROOT, 'src/client')).filter((name) => name.endsWith('.ts'));
    const inComments = sources.flatMap((name) => docCommentExamples(name, readFileSync(join(ROOT, 'src/client', name), 'utf8')));
    const inGuide = markdownExamples('docs/sdk.md', readFileSync(join(ROOT, 'docs/sdk.md'), 'utf8'));
    expect([inComments.length, inGuide.length].every((count) => count > 5)).toBe(true);
    await writeFile(join(consumer, 'examples.ts'), typedExamples([...inComments, ...inGuide], EXAMPLE_NAMES));

    await writeFile(
      join(consumer, 'program.ts'),
      `import { FencegateClient, type Lock, isFencegateError, clientFromEnvironment } from 'fencegate/client';
const client: FencegateClient = clientFromEnvironment(process.env, { onEvent: (event) => { if (event.type === 'lease_lost') event.error.code satisfies string; } });
const size: number = await client.withLease(['v/a', 'v/b'], { ttlMs: 5_000 }, async (lease) => (await lease.put('v/a', 'x')).size_bytes);
const lock: Lock = await client.lock('v/a');
for await (const event of client.watch({ volume: 'v' })) if (event.type !== 'reset') event.fencing_token satisfies string | null;
for await (const { outcome } of client.audit({ pathPrefix: 'a', action: 'put' })) outcome satisfies 'committed' | 'rejected' | 'aborted' | 'unknown' | 'pending';
try { await client.close(); } catch (error) { if (isFencegateError(error, 'stale_token')) error.code satisfies 'stale_token'; }
// @ts-expect-error: no such mode
await client.lease('v/a', { mode: 'sharde' });
export { lock, size };
`,
    );
    const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2023', '--exactOptionalPropertyTypes', '--types', 'node'];
    await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), ...options, 'program.ts', 'examples.ts'], { cwd: consumer }).catch(
      (failed: { stdout: string }) => {
        throw new Error(failed.stdout);
      },
    );
  });

  it('runs in a program of somebody else', async () => {
    const code = `import { FencegateClient, RETRY_RULES } from 'fencegate/client'; await new FencegateClient().close(); console.log(typeof RETRY_RULES)`;
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', code], { cwd: consumer });
    expect(stdout).toBe('object\n');
  });
});

import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** As deep below the project as the folders of the modules, whose paths to its other files are relative; and with its packages above it. */
const DIRECTORY = `${ROOT}node_modules/.gateway-child`;

/** Everything that is started as a script: what tests start by `childScript`, and what that starts by its name beside it. */
const SCRIPTS = [
  'test/support/gateway-child.ts',
  'test/support/fake-gateway-process.ts',
  'test/support/journal-child.ts',
  'src/journal/reader-thread.ts',
  'src/journal/writer-thread.ts',
  'src/storage/attribute-thread.ts',
  'src/zookeeper/supervisor-process.ts',
  'src/zookeeper/client-process.ts',
];

/** What is compiled, and what looks for files beside its own. */
const LEFT_OUT = [
  'better-sqlite3',
  'fs-xattr',
  'zookeeper',
  '@fastify/swagger-ui',
  '@grpc/grpc-js',
  '@grpc/proto-loader',
  '@grpc/reflection',
  'grpc-health-check',
];

/** The script of a process that a test controls. */
export function childScript(name: 'gateway-child' | 'fake-gateway-process' | 'journal-child'): string {
  return `${DIRECTORY}/${name}.js`;
}

/** Makes the scripts. In a dozen files instead of a thousand a gateway starts with a third of the processor time, and the tests start hundreds. */
export async function bundleChildren(): Promise<void> {
  const { build } = await import('esbuild');
  await build({
    absWorkingDir: ROOT,
    entryPoints: SCRIPTS,
    outdir: DIRECTORY,
    entryNames: '[name]',
    bundle: true,
    splitting: true,
    external: LEFT_OUT,
    // Packages that are CommonJS ask for the modules of Node with it.
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    platform: 'node',
    format: 'esm',
    target: 'node20',
    sourcemap: true,
    logLevel: 'error',
  });
}

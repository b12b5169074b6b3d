import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** As deep below the project as the folders of the modules, whose paths to its other files are relative; and with its packages above it. */
const DIRECTORY = `${ROOT}node_modules/.gateway-child`;

/** The script of a gateway process that a test controls. */
export const CHILD = `${DIRECTORY}/gateway-child.js`;

/** Everything that is started as a script: the child itself, and what it starts by its name beside it. */
const SCRIPTS = [
  'test/support/gateway-child.ts',
  'src/journal/reader-thread.ts',
  'src/journal/writer-thread.ts',
  'src/storage/attribute-thread.ts',
  'src/zookeeper/supervisor-process.ts',
  'src/zookeeper/client-process.ts',
];

/** Makes the script. In a dozen files instead of four hundred a gateway starts with half the processor time, and the tests start hundreds. */
export function bundleChild(): void {
  buildSync({
    absWorkingDir: ROOT,
    entryPoints: SCRIPTS,
    outdir: DIRECTORY,
    entryNames: '[name]',
    bundle: true,
    splitting: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    sourcemap: true,
    logLevel: 'error',
  });
}

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { bundleChildren } from './child-bundle.ts';
import { installPackages } from './debian-packages.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Several projects name this file; one build serves them all. */
const DONE = Symbol.for('test build');

/** Before the suites that start the product: its packages, a fresh `dist`, and the scripts of the processes that tests control. */
export async function setup(): Promise<void> {
  if (Reflect.get(globalThis, DONE) === true) return;
  installPackages();
  const build = spawnSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'], { cwd: ROOT, encoding: 'utf8' });
  if (build.status !== 0) throw new Error(`dist could not be built:\n${build.stdout}${build.stderr}`);
  await bundleChildren();
  Reflect.set(globalThis, DONE, true);
}

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { installPackages } from './debian-packages.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Several projects name this file; one build serves them all. */
const DONE = Symbol.for('test build');

/** Before the suites that start the product as it is shipped: its packages and a fresh `dist`. */
export function setup(): void {
  if (Reflect.get(globalThis, DONE) === true) return;
  installPackages();
  const build = spawnSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'], { cwd: ROOT, encoding: 'utf8' });
  if (build.status !== 0) throw new Error(`dist could not be built:\n${build.stdout}${build.stderr}`);
  Reflect.set(globalThis, DONE, true);
}

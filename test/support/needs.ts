import { execFileSync } from 'node:child_process';
import { describe, it } from 'vitest';

/** A suite that needs what not every machine allows. Where it cannot run, one test says why: silence would look like success. */
export function describeWhere(problem: string | null, name: string, suite: () => void): void {
  if (problem === null) describe(name, suite);
  else it(`${name}: not shown here, ${problem}`, () => undefined);
}

/** Why processes cannot get a pid namespace of their own here; `null` when they can. */
export const cannotUnshare: string | null = (() => {
  try {
    execFileSync('unshare', ['--pid', '--fork', 'true'], { stdio: 'ignore' });
    return null;
  } catch {
    return 'a pid namespace needs root and CAP_SYS_ADMIN';
  }
})();

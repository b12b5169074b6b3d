import { spawnSync } from 'node:child_process';
import type { ConsoleStep } from './console-blocks.ts';

/** What a shell answered to each of the commands, typed one after the other in one session. */
export function answersTo(
  steps: readonly ConsoleStep[],
  { directory, environment }: { readonly directory: string; readonly environment: Readonly<Record<string, string>> },
): Map<ConsoleStep, string> {
  const marks = steps.map((_, index) => `<<${index}>>`);
  const script = steps.map(({ command }, index) => `echo '${marks[index]}'\n${command}`).join('\n');
  const shell = spawnSync('bash', ['-c', `exec 2>&1\n${script}\n`], { cwd: directory, encoding: 'utf8', env: { ...environment } });
  return new Map(
    steps.map((step, index) => {
      const [, after = ''] = shell.stdout.split(`${marks[index]}\n`);
      return [step, after.split(`${marks[index + 1]}\n`)[0] ?? ''];
    }),
  );
}

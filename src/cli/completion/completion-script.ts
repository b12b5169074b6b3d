import type { Command } from 'commander';
import { UsageError } from '../usage-error.ts';
import { bashScript } from './bash-script.ts';
import { type Completed, completedCommands } from './completed-commands.ts';
import { fishScript } from './fish-script.ts';
import { zshScript } from './zsh-script.ts';

const SHELLS: Readonly<Record<string, (commands: readonly Completed[]) => string>> = { bash: bashScript, zsh: zshScript, fish: fishScript };
export const SHELL_NAMES = Object.keys(SHELLS);

/** A completion script for one of the shells, made from the commands as they are. Throws `UsageError`. */
export function completionScript(shell: string, program: Command): string {
  const script = SHELLS[shell];
  if (script === undefined) throw new UsageError(`no completion for ${shell}; there is one for ${SHELL_NAMES.join(', ')}`);
  return script(completedCommands(program));
}

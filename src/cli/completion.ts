import type { Command } from 'commander';
import { UsageError } from './usage-error.ts';

/** One command of the tree: how it is reached (empty for the program itself), and what may follow. */
interface Node {
  readonly path: string;
  readonly words: readonly string[];
  readonly options: readonly string[];
}

const SHELLS: Readonly<Record<string, (nodes: readonly Node[]) => string>> = { bash, zsh, fish };
export const SHELL_NAMES = Object.keys(SHELLS);

/** A completion script for one of the shells, made from the commands as they are. Throws `UsageError`. */
export function completionScript(shell: string, program: Command): string {
  const script = SHELLS[shell];
  if (script === undefined) throw new UsageError(`no completion for ${shell}; there is one for ${SHELL_NAMES.join(', ')}`);
  return script(nodesOf(program, ''));
}

function nodesOf(command: Command, path: string): Node[] {
  const subcommands = command.createHelp().visibleCommands(command);
  const options = command
    .createHelp()
    .visibleOptions(command)
    .flatMap(({ long }) => (typeof long === 'string' ? [long] : []));
  const inner = subcommands.filter((one) => one.name() !== 'help').flatMap((one) => nodesOf(one, `${path} ${one.name()}`.trim()));
  return [{ path, words: subcommands.map((one) => one.name()), options }, ...inner];
}

/** The `case` that bash and zsh share: what may follow the commands typed so far. */
function cases(nodes: readonly Node[]): string {
  return nodes.map(({ path, words, options }) => `    '${path}') echo '${[...words, ...options].join(' ')}' ;;`).join('\n');
}

function bash(nodes: readonly Node[]): string {
  return `# eval "$(fencegate completion bash)", or keep it in /etc/bash_completion.d
_fencegate_words() {
  case "$1" in
${cases(nodes)}
  esac
}
_fencegate() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path='' word index
  COMPREPLY=()
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    if [[ $word == -- ]]; then
      COMPREPLY=($(compgen -c -- "$current"))
      return
    fi
    [[ $word != -* && " $(_fencegate_words "$path") " == *" $word "* ]] && path="\${path:+$path }$word"
  done
  COMPREPLY=($(compgen -W "$(_fencegate_words "$path")" -- "$current"))
}
complete -o default -F _fencegate fencegate
`;
}

function zsh(nodes: readonly Node[]): string {
  return `#compdef fencegate
# eval "$(fencegate completion zsh)", or keep it as _fencegate in a directory of $fpath
_fencegate_words() {
  case "$1" in
${cases(nodes)}
  esac
}
_fencegate() {
  local command_path='' word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    if [[ $word == -- ]]; then
      _normal
      return
    fi
    [[ $word != -* && " $(_fencegate_words "$command_path") " == *" $word "* ]] && command_path="\${command_path:+$command_path }$word"
  done
  compadd -- \${=$(_fencegate_words "$command_path")} || _files
}
compdef _fencegate fencegate
`;
}

function fish(nodes: readonly Node[]): string {
  const lines = nodes.flatMap(({ path, words, options }) => {
    const here = `complete -c fencegate -n '__fencegate_at "${path}"'`;
    return [...words.map((word) => `${here} -f -a ${word}`), ...options.map((option) => `${here} -l ${option.slice(2)}`)];
  });
  const known = nodes.filter(({ path }) => path !== '').map(({ path }) => `'${path}'`);
  return `# fencegate completion fish | source, or keep it in ~/.config/fish/completions/fencegate.fish
function __fencegate_at
    set -l path ''
    for word in (commandline -opc)[2..-1]
        set -l longer (string trim "$path $word")
        contains -- $longer ${known.join(' ')}; and set path $longer
    end
    test "$path" = "$argv[1]"
end
${lines.join('\n')}
`;
}

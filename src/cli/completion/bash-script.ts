import type { Completed } from './completed-commands.ts';
import { shellCases } from './shell-cases.ts';

/** Where nothing is known bash completes names of files (`-o default`). */
export function bashScript(commands: readonly Completed[]): string {
  return `# eval "$(fencegate completion bash)", or keep it in /etc/bash_completion.d
${shellCases(commands)}_fencegate() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path='' value='' word index
  COMPREPLY=()
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    if [[ -n $value ]]; then
      value=''
    elif [[ $word == -- ]]; then
      ((index + 1 == COMP_CWORD)) && COMPREPLY=($(compgen -c -- "$current"))
      return
    elif [[ $word == -* ]]; then
      value="$(_fencegate_value "\${path:+$path }$word")"
    elif [[ " $(_fencegate_words "$path") " == *" $word "* ]]; then
      path="\${path:+$path }$word"
    fi
  done
  case $value in
    :file) ;;
    :text) compopt +o default ;;
    ?*) COMPREPLY=($(compgen -W "$value" -- "$current")) ;;
    *)
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$(_fencegate_options "$path")" -- "$current"))
      else
        COMPREPLY=($(compgen -W "$(_fencegate_words "$path")" -- "$current"))
      fi
      ;;
  esac
}
complete -o default -F _fencegate fencegate
`;
}

import type { Completed } from './completed-commands.ts';
import { shellCases } from './shell-cases.ts';

/** Where nothing is known bash completes names of files (`-o default`). */
export function bashScript(commands: readonly Completed[]): string {
  return `# eval "$(fencegate completion bash)", or keep it in /etc/bash_completion.d
${shellCases(commands)}_fencegate() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path='' value='' before='' word index
  COMPREPLY=()
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    if [[ $word == = ]]; then
      # Of --option=value bash makes three words.
      continue
    elif [[ -n $value ]]; then
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
  [[ $current == = ]] && current=''
  # Where = is taken out of COMP_WORDBREAKS they are one.
  if [[ -z $value && $current == --*=* ]]; then
    before="\${current%%=*}="
    value="$(_fencegate_value "\${path:+$path }\${current%%=*}")"
    value="\${value:-:text}"
    current="\${current#*=}"
  fi
  case $value in
    :file) [[ -n $before ]] && COMPREPLY=($(compgen -P "$before" -f -- "$current")) ;;
    :text) compopt +o default ;;
    ?*) COMPREPLY=($(compgen -P "$before" -W "$value" -- "$current")) ;;
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

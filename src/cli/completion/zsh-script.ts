import type { Completed } from './completed-commands.ts';
import { shellCases } from './shell-cases.ts';

/** Runs as it is, and as a file of `$fpath`, which is loaded in the middle of the first completion. */
export function zshScript(commands: readonly Completed[]): string {
  return `#compdef fencegate
# eval "$(fencegate completion zsh)" after compinit, or keep it as _fencegate in a directory of $fpath
${shellCases(commands)}_fencegate() {
  local command_path='' value='' word index
  for ((index = 2; index < CURRENT; index++)); do
    word=\${words[index]}
    if [[ -n $value ]]; then
      value=''
    elif [[ $word == -- ]]; then
      shift $index words
      ((CURRENT -= index))
      _normal
      return
    elif [[ $word == -* ]]; then
      value=$(_fencegate_value "\${command_path:+$command_path }$word")
    elif [[ " $(_fencegate_words "$command_path") " == *" $word "* ]]; then
      command_path="\${command_path:+$command_path }$word"
    fi
  done
  local -a known
  if [[ -z $value && $PREFIX == --*=* ]]; then
    value=$(_fencegate_value "\${command_path:+$command_path }\${PREFIX%%=*}")
    compset -P 1 '*='
    : \${value:=:text}
  fi
  case $value in
    :file) _files ;;
    :text) return 1 ;;
    ?*) compadd -- \${=value} ;;
    *)
      if [[ $PREFIX == -* ]]; then
        compadd -- \${=$(_fencegate_options "$command_path")}
      else
        known=(\${=$(_fencegate_words "$command_path")})
        if ((\${#known})); then compadd -a known; else _files; fi
      fi
      ;;
  esac
}
if [[ \${funcstack[1]} == _fencegate ]]; then
  _fencegate "$@"
elif ((\${+functions[compdef]})); then
  compdef _fencegate fencegate
else
  print -u2 'fencegate: completion begins with: autoload -Uz compinit && compinit'
fi
`;
}

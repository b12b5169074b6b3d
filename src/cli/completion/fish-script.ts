import { type Completed, type CompletedOption, valued } from './completed-commands.ts';

/** Where nothing is known fish completes names of files. */
export function fishScript(commands: readonly Completed[]): string {
  const known = commands.filter(({ path }) => path !== '').map(({ path }) => quoted(path));
  const values = valued(commands).map(({ typed }) => quoted(typed));
  const lines = commands.flatMap(({ path, words, options }) => {
    const here = `complete -c fencegate -n ${quoted(`__fencegate_at ${quoted(path)}`)}`;
    return [
      ...words.map(({ name, description }) => `${here} -f -a ${name}${described(description)}`),
      ...options.map((option) => `${here} -l ${option.name.slice(2)}${taken(option)}${described(option.description)}`),
    ];
  });
  return `# fencegate completion fish | source, or keep it in ~/.config/fish/completions/fencegate.fish
function __fencegate_typed -d 'The commands before the cursor; fails after --'
    set -l path
    set -l value no
    for word in (commandline -opc)[2..-1]
        if test $value = yes
            set value no
        else if test "$word" = --
            return 1
        else if contains -- (string trim "$path $word") ${values.join(' ')}
            set value yes
        else if contains -- (string trim "$path $word") ${known.join(' ')}
            set path (string trim "$path $word")
        end
    end
    echo "$path"
end
function __fencegate_at
    set -l path (__fencegate_typed); and test "$path" = "$argv[1]"
end
function __fencegate_command -d 'Completes what stands after --, as a command of its own'
    set -l words (commandline -opc)
    set -l from (math (contains -i -- -- $words) + 1)
    complete -C (string join ' ' -- (string escape -- $words[$from..-1]) (commandline -ct))
end
complete -c fencegate -n 'not __fencegate_typed > /dev/null' -x -a '(__fencegate_command)'
${lines.join('\n')}
`;
}

function taken({ value }: CompletedOption): string {
  if (value === 'none') return '';
  if (value === 'file') return ' -r -F';
  return typeof value === 'string' ? ' -x' : ` -x -a ${quoted(value.join(' '))}`;
}

function described(description: string): string {
  return description === '' ? '' : ` -d ${quoted(description)}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}

import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CliProcess } from '../support/cli-process.ts';
import { BIN } from '../support/command-line.ts';
import { ShellAtTerminal } from '../support/shell-at-terminal.ts';

/** What the completion scripts do in the shells that they are for: typed at a terminal, with a tab at the end. */

let directory: string;
/** The directory from which commands are typed: it has one file. */
let here: string;
let environment: Record<string, string>;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'fencegate-completion-'));
  here = join(directory, 'here');
  mkdirSync(here);
  writeFileSync(join(here, 'quarter-figures.csv'), '');
  const programs = join(directory, 'programs');
  mkdirSync(programs);
  writeFileSync(join(programs, 'close-the-quarter'), '#!/bin/sh\n');
  chmodSync(join(programs, 'close-the-quarter'), 0o755);
  environment = { PATH: `${programs}:${process.env['PATH']}`, HOME: directory, LC_ALL: 'C.UTF-8' };
  for (const shell of ['bash', 'zsh', 'fish']) {
    const made = new CliProcess([BIN, 'completion', shell], {}, directory);
    expect(await made.ended()).toEqual({ code: 0, signal: null });
    writeFileSync(join(directory, `completion.${shell}`), made.stdout);
  }
  mkdirSync(join(directory, 'functions'));
  const zsh = new CliProcess([BIN, 'completion', 'zsh'], {}, directory);
  await zsh.ended();
  writeFileSync(join(directory, 'functions/_fencegate'), zsh.stdout);
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** The command shows what it was called with. */
const SHOWS = `fencegate() { printf '<%s>' "$@"; echo "."; }; PS1='rea'; PS1+='dy> '`;
const ZSH = "zstyle ':completion:*' list-prompt ''; setopt no_beep";

const SHELLS = [
  { name: 'bash', command: 'bash --norc --noprofile -i', setUp: () => `${SHOWS}; bind 'set bell-style none'; source ${directory}/completion.bash` },
  {
    name: 'bash that breaks no words at =',
    command: 'bash --norc --noprofile -i',
    setUp: () => `${SHOWS}; COMP_WORDBREAKS="\${COMP_WORDBREAKS//=}"; bind 'set bell-style none'; source ${directory}/completion.bash`,
  },
  {
    name: 'zsh, evaluated',
    command: 'zsh -f -i',
    setUp: () => `${SHOWS}; ${ZSH}; autoload -Uz compinit && compinit -u -D; source ${directory}/completion.zsh`,
  },
  {
    name: 'zsh, from a directory of fpath',
    command: 'zsh -f -i',
    setUp: () => `${SHOWS}; ${ZSH}; fpath=(${directory}/functions $fpath); autoload -Uz compinit && compinit -u -D`,
  },
  {
    name: 'fish',
    command: 'fish --no-config -i',
    setUp: () =>
      `function fencegate; printf '<%s>' $argv; echo .; end; function fish_prompt; echo -n rea; echo -n 'dy> '; end; source ${directory}/completion.fish`,
  },
];

/** Each is typed up to the tab, and completes to what is there only once. */
const TYPED: readonly (readonly [typed: string, becomes: string])[] = [
  ['edi', '<edit>'],
  ['lock sh', '<lock><show>'],
  ['exec --lo', '<exec><--lock>'],
  // The value of an option is no subcommand.
  ['exec --lock lock --gr', '<exec><--lock><lock><--grace>'],
  ['lock list --state w', '<lock><list><--state><waiting>'],
  // The value may follow its option in the same word.
  ['lock list --state=w', '<lock><list><--state=waiting>'],
  ['audit --outcome=rej', '<audit><--outcome=rejected>'],
  ['ls --auth-token-file=quart', '<ls><--auth-token-file=quarter-figures.csv>'],
  ['exec --lock=lock --gr', '<exec><--lock=lock><--grace>'],
  ['exec --lock=demo/a -- close-th', '<exec><--lock=demo/a><--><close-the-quarter>'],
  ['completion f', '<completion><fish>'],
  ['put quart', '<put><quarter-figures.csv>'],
  ['ls --auth-token-file quart', '<ls><--auth-token-file><quarter-figures.csv>'],
  // After -- it is another command: its name, and what that one takes.
  ['exec --lock demo/a -- close-th', '<exec><--lock><demo/a><--><close-the-quarter>'],
  ['exec --lock demo/a -- close-the-quarter quart', '<exec><--lock><demo/a><--><close-the-quarter><quarter-figures.csv>'],
];

describe.each(SHELLS)('completion in $name', ({ command, setUp }) => {
  it('completes commands, options, their values, files, and the command after --', async () => {
    const shell = new ShellAtTerminal(command, { directory: here, environment });
    try {
      await shell.answer(`${setUp()}\n`, /ready> /);
      const seen: [string, string][] = [];
      for (const [typed] of TYPED) {
        const shown = await shell.answer(`fencegate ${typed}\t\n`, /(?:<[^<>]*>)+\.\r?\n[\s\S]*ready> /);
        seen.push([typed, /((?:<[^<>]*>)+)\.\r?\n/.exec(shown)?.[1] ?? shown]);
      }
      expect(seen).toEqual(TYPED);
    } finally {
      await shell.end();
    }
  });
});

describe('completion', () => {
  it('in a zsh without compinit says what is missing', async () => {
    const zsh = new ShellAtTerminal('zsh -f -i', { directory: here, environment });
    expect(await zsh.answer(`source ${directory}/completion.zsh\n`, /compinit && compinit/)).toContain('fencegate: completion begins with');
    await zsh.end();
  });

  it('of an unknown shell is wrong usage', async () => {
    const made = new CliProcess([BIN, 'completion', 'tcsh'], {}, directory);
    expect(await made.ended()).toEqual({ code: 64, signal: null });
    expect(made.stderr).toContain('bash, zsh, fish');
  });
});

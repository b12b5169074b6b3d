import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import type { CommandContext } from '../../../src/cli/command-context.ts';
import { programOf } from '../../../src/cli/program.ts';

/** Nothing of it is asked for a help. */
const program = programOf({} as CommandContext, async () => undefined);

function leavesOf(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);
}

function nameOf(command: Command): string {
  return command.parent === null || command.parent === program ? command.name() : `${nameOf(command.parent)} ${command.name()}`;
}

function helpOf(command: Command): string {
  let text = '';
  command.configureOutput({ writeOut: (part) => (text += part) }).outputHelp();
  return text;
}

const HELPS = new Map(leavesOf(program).map((leaf) => [nameOf(leaf), helpOf(leaf)]));

describe('the help', () => {
  it('explains every command, with examples', () => {
    expect(HELPS.size).toBeGreaterThan(20);
    expect([...HELPS].filter(([, help]) => !help.includes('Examples:\n  $ ')).map(([name]) => name)).toEqual([]);
  });

  it('of exec says that what writes the mount directly is not fenced', () => {
    expect(HELPS.get('exec')).toMatch(/writes the mount directly is NOT fenced/);
  });

  it('has --json for every command, but those whose output is not theirs', () => {
    expect([...HELPS].filter(([, help]) => !help.includes('--json')).map(([name]) => name)).toEqual(['serve', 'demo', 'completion', 'exec', 'edit']);
  });

  it('tells each default once', () => {
    expect(HELPS.get('audit')).toContain('how often --follow asks; default 1s\n');
    for (const help of HELPS.values()) expect(help.split('\n').filter((line) => (line.match(/default/g)?.length ?? 0) > 1)).toEqual([]);
  });
});

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ENVIRONMENT_VARIABLES } from '../../../src/config/environment-schema.ts';
import { expectation } from '../../../src/config/problems.ts';

const at = (name: string) => readFileSync(new URL(`../../../${name}`, import.meta.url), 'utf8');

describe('.env.example', () => {
  it('lists every variable with its explanation and its default, in the order of the schema', () => {
    const blocks = ENVIRONMENT_VARIABLES.map(([name, schema]) => {
      const form = expectation(schema);
      return `# ${schema.description}${form === 'a text' ? '' : ` (${form})`}\n${name}=${schema['default'] ?? ''}\n`;
    });
    expect(
      at('.env.example')
        .split('\n\n')
        .slice(1)
        .map((block) => `${block.trimEnd()}\n`),
    ).toEqual(blocks);
  });
});

describe('docs/configuration.md', () => {
  it('has a row for every variable, with its default', () => {
    const text = at('docs/configuration.md');
    for (const [name, schema] of ENVIRONMENT_VARIABLES) {
      const byDefault = schema['default'] === undefined ? '' : `\`${schema['default']}\``;
      expect(text).toContain(`| \`${name}\` | ${byDefault} | ${schema.description} |`);
    }
  });
});

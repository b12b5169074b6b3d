export interface CodeExample {
  /** Where it stands: file and line. */
  readonly at: string;
  readonly code: string;
}

/** The `@example` parts of the doc comments of a source file. */
export function docCommentExamples(file: string, text: string): CodeExample[] {
  return [...text.matchAll(/\/\*\*(?:[^*]|\*(?!\/))*\*\//g)].flatMap((comment) => {
    const [, ...examples] = comment[0].split('@example');
    const line = text.slice(0, comment.index).split('\n').length;
    return examples.map((example) => ({ at: `${file}:${line}`, code: example.replace(/\*\/$/, '').replace(/^\s*\* ?/gm, '') }));
  });
}

/** The JavaScript blocks of a Markdown file, without their imports. */
export function markdownExamples(file: string, text: string): CodeExample[] {
  return [...text.matchAll(/^```js\n(.*?)^```/gms)].map((block) => ({
    at: `${file}:${text.slice(0, block.index).split('\n').length}`,
    code: (block[1] ?? '').replace(/^import .*$/gm, ''),
  }));
}

/** The examples as one module of somebody else's, for the compiler: each a function, over `declarations` of the names that they do not make themselves. */
export function typedExamples(examples: readonly CodeExample[], declarations: string): string {
  const functions = examples.map(
    ({ at, code }, index) => `// ${at}\nexport async function example${index}(): Promise<unknown> {\n${code}\nreturn;\n}\n`,
  );
  return `${declarations}\n${functions.join('\n')}`;
}

/** Runs an example with `scope` as its names. */
export async function runExample({ code }: CodeExample, scope: Readonly<Record<string, unknown>>): Promise<void> {
  const AsyncFunction = Object.getPrototypeOf(async () => undefined).constructor as new (
    ...parts: string[]
  ) => (...values: unknown[]) => Promise<unknown>;
  await new AsyncFunction(...Object.keys(scope), code)(...Object.values(scope));
}

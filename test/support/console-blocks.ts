/** The console blocks of a Markdown file: what a reader types, and what comes. */
export interface ConsoleStep {
  readonly line: number;
  readonly command: string;
  /** `...` stands for anything. */
  readonly output: string;
}

export function consoleSteps(markdown: string): ConsoleStep[] {
  const steps: { line: number; command: string; output: string[] }[] = [];
  let inside = false;
  markdown.split('\n').forEach((text, index) => {
    if (text.startsWith('```')) inside = text === '```console';
    else if (inside && text.startsWith('$ ')) steps.push({ line: index + 1, command: text.slice(2), output: [] });
    else if (inside) steps.at(-1)?.output.push(text);
  });
  return steps.map((step) => ({ ...step, output: step.output.join('\n').trim() }));
}

/** Whether `actual` is what `expected` promises. */
export function fits(actual: string, expected: string): boolean {
  const pattern = expected
    .split('...')
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    .join('[^]*?');
  return new RegExp(`^${pattern}$`).test(actual.trim());
}

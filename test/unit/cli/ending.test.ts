import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { endProcess, endProcessNow } from '../../../src/cli/ending.ts';
import { CliProcess } from '../../support/cli-process.ts';

function fakeProcess(busy: () => string[]) {
  const calls: string[] = [];
  return { calls, exit: (code: number) => void calls.push(`exit ${code}`), kill: () => void calls.push('kill'), busyWith: busy };
}

describe('ending the process', () => {
  it('is a plain exit when no operation is in flight', async () => {
    const process = fakeProcess(() => ['Timeout', 'TCPSocketWrap']);
    await endProcess(process, 3);
    expect(process.calls).toEqual(['exit 3']);
  });

  it('waits for an operation that is about to return', async () => {
    let rounds = 3;
    const process = fakeProcess(() => (rounds-- > 0 ? ['FSReqCallback'] : []));
    await endProcess(process, 0);
    expect(process.calls).toEqual(['exit 0']);
  });

  it('is SIGKILL at once when it must be at once and a thread is stuck', () => {
    const process = fakeProcess(() => ['FSReqPromise']);
    endProcessNow(process, 143);
    expect(process.calls[0]).toBe('kill');
  });

  it('does not hang on a thread that is stuck in the file system, as process.exit would', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'fencegate-stuck-'));
    execFileSync('mkfifo', [join(directory, 'stuck')]);
    const script = `
      import { open } from 'node:fs';
      import { endProcess } from ${JSON.stringify(new URL('../../../src/cli/ending.ts', import.meta.url).href)};
      open('stuck', 'r', () => undefined);
      await endProcess({ exit: (c) => process.exit(c), kill: () => process.kill(process.pid, 'SIGKILL'), busyWith: () => process.getActiveResourcesInfo() }, 0);
    `;
    const process_ = new CliProcess(['--import', import.meta.resolve('tsx'), '--input-type=module', '--eval', script], {}, directory);
    expect(await process_.ended()).toEqual({ code: null, signal: 'SIGKILL' });
  });
});

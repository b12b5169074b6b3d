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

const source = (module: string): string => JSON.stringify(new URL(`../../../src/${module}`, import.meta.url).href);

/** How a process ends that runs `script` beside a FIFO called `stuck`, which nobody writes to. */
function endOf(script: string): Promise<{ code: number | null; signal: string | null }> {
  const directory = mkdtempSync(join(tmpdir(), 'fencegate-stuck-'));
  execFileSync('mkfifo', [join(directory, 'stuck')]);
  return new CliProcess(['--import', import.meta.resolve('tsx'), '--input-type=module', '--eval', script], {}, directory).ended();
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
    const script = `
      import { open } from 'node:fs';
      import { endProcess } from ${source('cli/ending.ts')};
      open('stuck', 'r', () => undefined);
      await endProcess({ exit: (c) => process.exit(c), kill: () => process.kill(process.pid, 'SIGKILL'), busyWith: () => process.getActiveResourcesInfo() }, 0);
    `;
    expect(await endOf(script)).toEqual({ code: null, signal: 'SIGKILL' });
  });

  /** A thread inside of `open(2)` of a FIFO stands for one that is inside of `setxattr(2)` on a dead mount. */
  const stuckThread = `
    import { Worker } from 'node:worker_threads';
    import { AttributeCalls } from ${source('storage/attribute-calls.ts')};
    import { endProcess } from ${source('cli/ending.ts')};
    import { threadsInside } from ${source('domain/threads-inside.ts')};
    const thread = "require('node:worker_threads').parentPort.on('message', ({ id }) => { if (id === 2) require('node:fs').openSync('stuck'); else require('node:worker_threads').parentPort.postMessage({ id, notCarried: 0, failure: null }); })";
    const attributes = new AttributeCalls(() => undefined, () => new Worker(thread, { eval: true, execArgv: [] }));
    const job = { kind: 'pass_nothing_on', directory: '/' };
    const own = {
      exit: (c) => process.exit(c),
      kill: () => process.kill(process.pid, 'SIGKILL'),
      busyWith: () => [...process.getActiveResourcesInfo(), ...threadsInside()],
    };
    await attributes.begin(job).done;`;

  it('does not hang on a thread of a volume that is stuck in a call for attributes', async () => {
    const script = `${stuckThread}
      attributes.begin(job);
      attributes.end();
      await endProcess(own, 0);`;
    expect(await endOf(script)).toEqual({ code: null, signal: 'SIGKILL' });
  });

  it('is a plain exit when such a thread has nothing to do, whether it was told to end or not', async () => {
    expect(await endOf(`${stuckThread}\n attributes.end();\n await endProcess(own, 4);`)).toEqual({ code: 4, signal: null });
    expect(await endOf(`${stuckThread}\n await endProcess(own, 4);`)).toEqual({ code: 4, signal: null });
  });
});

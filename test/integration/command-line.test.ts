import { mkdtempSync, readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CliProcess } from '../support/cli-process.ts';

const BIN = fileURLToPath(new URL('../../bin/fencegate.cjs', import.meta.url));

let directory: string;
let running: CliProcess[];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'fencegate-bin-'));
  running = [];
});
afterEach(() => {
  for (const process of running) process.signal('SIGKILL');
});

function start(argv: readonly string[], environment: Record<string, string>): CliProcess {
  const process = new CliProcess([BIN, ...argv], environment, directory);
  running.push(process);
  return process;
}

describe('fencegate serve, as it is shipped', () => {
  it('needs no setting but a free port, and ends with 0 when asked to', async () => {
    const process = start(['serve'], { FENCEGATE_PORT: '0' });
    await process.says('"message":"listening"');
    const url = String(process.line('"message":"listening"')['url']);
    const entries = (await (await fetch(`${url}/v1/files/demo/ledger/`)).json()) as { entries: { name: string }[] };
    expect(entries.entries.map(({ name }) => name).sort()).toEqual(['2025-q4.csv', '2026-q1.csv', 'closed']);
    process.signal('SIGTERM');
    expect(await process.ended()).toEqual({ code: 0, signal: null });
    expect(process.stderr).toBe('');
  });

  it('says in one line that its port is in use, and which variable changes it', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => void other.listen(0, '127.0.0.1', resolve));
    const address = other.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const process = start(['serve'], { FENCEGATE_PORT: String(port) });
    expect(await process.ended()).toEqual({ code: 1, signal: null });
    expect(process.stderr).toBe(`fencegate: port ${port} on 127.0.0.1 is in use; set FENCEGATE_PORT to another one\n`);
    other.close();
  });

  it('B36: a second process over the same data directory ends at once with one line', async () => {
    const first = start(['serve'], { FENCEGATE_PORT: '0' });
    await first.says('"message":"listening"');
    const second = start(['serve'], { FENCEGATE_PORT: '0' });
    expect(await second.ended()).toEqual({ code: 1, signal: null });
    expect(second.stderr).toMatch(/^fencegate: [^\n]+\n$/);
    first.signal('SIGTERM');
    expect(await first.ended()).toEqual({ code: 0, signal: null });
  });
});

describe('fencegate demo', () => {
  it('tells the story, the late write refused with nothing sent, and leaves nothing behind', async () => {
    const process = start(['demo'], { TMPDIR: directory });
    const { code } = await process.ended();
    expect([code, process.stderr]).toEqual([0, '']);
    expect(process.stdout).toMatch(/A: 412 (stale_token|lease_ended)\. Of its 8388608 bytes 0 left the socket\./);
    expect(process.stdout).toContain('The file is what B wrote.');
    expect(process.stdout).toMatch(/rejected +stale_token/);
    expect(readdirSync(directory)).toEqual([]);
  });

  it('that is interrupted says by its exit code which signal that was, and leaves nothing behind', async () => {
    const process = start(['demo'], { TMPDIR: directory });
    await process.says('A gateway runs at');
    process.signal('SIGINT');
    expect(await process.ended()).toEqual({ code: 130, signal: null });
    expect(readdirSync(directory)).toEqual([]);
  });

  it('that nobody reads any more ends as it would at that signal, and leaves nothing behind', async () => {
    const process = start(['demo'], { TMPDIR: directory });
    await process.says('A gateway runs at');
    process.child.stdout.destroy();
    expect(await process.ended()).toEqual({ code: 141, signal: null });
    expect(readdirSync(directory)).toEqual([]);
  });
});

import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { startProblem } from '../../../src/cli/start-problem.ts';

function listenError(host: string, port: number): Promise<unknown> {
  return new Promise((resolve) => void createServer().once('error', resolve).listen(port, host));
}

describe('why the start failed', () => {
  it('names FENCEGATE_PORT when the port is in use', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => void other.listen(0, '127.0.0.1', resolve));
    const address = other.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const error = await listenError('127.0.0.1', port);
    expect(startProblem(error, { host: '127.0.0.1', port })).toBe(`port ${port} on 127.0.0.1 is in use; set FENCEGATE_PORT to another one`);
    expect(startProblem(new Error('start failed', { cause: error }), { host: '127.0.0.1', port })).toContain('FENCEGATE_PORT');
    other.close();
  });

  it('names FENCEGATE_HOST when the address is not of this machine', async () => {
    const error = await listenError('192.0.2.1', 0);
    expect(startProblem(error, { host: '192.0.2.1', port: 8080 })).toBe('192.0.2.1 is no address of this machine; set FENCEGATE_HOST to one that is');
  });

  it('does not blame the port for what happened elsewhere', () => {
    const error = Object.assign(new Error('EADDRINUSE: of something else'), { code: 'EADDRINUSE' });
    expect(startProblem(error, { host: '127.0.0.1', port: 1 })).toBe('EADDRINUSE: of something else');
  });

  it('is one line', () => {
    expect(startProblem(new Error('a\n  b'), { host: 'h', port: 1 })).toBe('a b');
  });
});

import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { AuditRecord, DoctorReport } from '../../src/client/contract/answers.ts';
import type { CommandLine } from '../support/command-line.ts';
import { commandLineSuite } from '../support/command-line-suite.ts';

/** Orders that the gateway has not answered, or not as was asked: what is said of them, and how their outcome is found. */

const lab = commandLineSuite();

beforeAll(() => {
  writeFileSync(join(lab.directory, 'a.txt'), 'a');
});

interface Front {
  readonly cli: CommandLine;
  /** The id of the first order that came. */
  readonly order: Promise<string>;
}

/** What stands in front of a gateway, and answers questions only. */
async function front(onOrder: (request: IncomingMessage, response: ServerResponse) => Promise<unknown>, questions: object): Promise<Front> {
  let told: (id: string) => void = () => undefined;
  const order = new Promise<string>((resolve) => {
    told = resolve;
  });
  const server = createServer((request, response) => {
    if (request.method === 'GET') response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(questions));
    else void onOrder(request, response).then(() => told(String(request.headers['x-request-id'])));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { cli: lab.cli.with({ FENCEGATE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }), order };
}

const FINDING: DoctorReport['findings'][number] = {
  id: 'unknown_directory.1',
  code: 'unknown_directory',
  severity: 'warning',
  resource: null,
  evidence: {},
  fix: 'Remove it.',
};
const interruption = (id: string): string =>
  `fencegate: interrupted before the gateway answered: what became of it is not known\nfencegate: next: fencegate audit --request ${id} tells what became of it\n`;

describe('an order that is interrupted before it is answered', () => {
  it.each([
    ['put', 'a.txt', 'v/x'],
    ['rm', 'v/x'],
    ['mv', 'v/x', 'v/y'],
    ['lock', 'break', 'v/x', '--reason', 'r', '--lease', 'held'],
    ['fence', 'rebase', '--reason', 'r'],
    ['volume', 'adopt', 'v', '--reason', 'r'],
    ['doctor', '--fix'],
  ])('%s: its outcome is not known, and is found by the request', async (...argv) => {
    const { cli, order } = await front(async (request) => request.resume(), { findings: [FINDING] });
    const command = cli.start(...argv);
    const id = await order;
    command.signal('SIGINT');
    expect(await command.ended()).toEqual({ code: 130, signal: null });
    expect([command.stdout, command.stderr]).toEqual(['', interruption(id)]);
  });

  it('by SIGTERM ends with 143', async () => {
    const { cli, order } = await front(async () => undefined, {});
    const command = cli.start('rm', 'v/x');
    const id = await order;
    command.signal('SIGTERM');
    expect([await command.ended(), command.stderr]).toEqual([{ code: 143, signal: null }, interruption(id)]);
  });

  it('may have been carried out: the audit log has it under that id', async () => {
    const resource = 'v/orders/broken';
    const held = (await lab.client.lease(resource)).leaseRef ?? '';
    const { cli, order } = await front(async (request) => {
      const { 'content-type': type = '', 'x-request-id': id } = request.headers;
      const body = Buffer.concat(await request.toArray());
      const answer = await fetch(`${lab.gateway.url}${request.url}`, {
        method: 'POST',
        body,
        headers: { 'content-type': type, 'x-request-id': String(id) },
      });
      expect(answer.status).toBe(200);
    }, {});
    const command = cli.start('lock', 'break', resource, '--reason', 'a test', '--lease', held);
    const id = await order;
    command.signal('SIGINT');
    await command.ended();
    const [, next = ''] = /next: fencegate (.*) tells what/.exec(command.stderr) ?? [];
    const { stdout } = await lab.cli.run(...next.split(' '), '--json');
    const records = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as AuditRecord);
    expect(records).toMatchObject([{ action: 'lease_break', outcome: 'committed', request_id: id, resource }]);
  });

  it('edit: so it is with what was to be put back, and the copy is kept', async () => {
    await lab.client.put('v/edited', 'before');
    let told: (id: string) => void = () => undefined;
    const order = new Promise<string>((resolve) => {
      told = resolve;
    });
    // Everything passes but what puts the copy back.
    const server = createServer((request, response) => {
      if (request.method === 'PUT') {
        told(String(request.headers['x-request-id']));
        return;
      }
      const onward = httpRequest(`${lab.gateway.url}${request.url}`, { method: request.method, headers: request.headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 0, answer.headers);
        answer.pipe(response);
      });
      onward.on('error', () => response.destroy());
      request.pipe(onward);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const cli = lab.cli.with({ FENCEGATE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
    const command = cli.start('edit', 'v/edited', '--', 'sh', '-c', 'echo after > {}');
    const id = await order;
    command.signal('SIGINT');
    expect((await command.ended()).code).toBe(130);
    const [, copy = ''] = /is kept in (\S+)\n/.exec(command.stderr) ?? [];
    expect(readFileSync(copy, 'utf8')).toBe('after\n');
    rmSync(join(copy, '..'), { recursive: true });
    expect(command.stderr).toContain(interruption(id));
  });

  it('is none where a command only asks', async () => {
    await lab.client.put('v/asked', 'x');
    const command = lab.cli.start('audit', 'v/asked', '--follow');
    await command.says('v/asked');
    command.signal('SIGINT');
    expect([await command.ended(), command.stderr]).toEqual([{ code: 0, signal: null }, '']);
  });
});

describe('an order whose answer is lost', () => {
  it('is told with its request, and where to look for it', async () => {
    const { cli, order } = await front(async (request) => request.socket.destroy(), {});
    const { code, stderr } = await cli.run('lock', 'break', 'v/x', '--reason', 'r', '--lease', 'held');
    const id = await order;
    expect([code, stderr]).toEqual([
      69,
      `fencegate: to ask for the same break again, and for no other, add --lease held\nfencegate: gateway_unreachable: The gateway was not reached: UND_ERR_SOCKET. [request ${id}]\nfencegate: next: check that the gateway runs, and FENCEGATE_URL or --gateway, http or https, too; should the request have arrived, fencegate audit --request ${id} tells what became of it\n`,
    ]);
  });
});

describe('a finding of the doctor', () => {
  it('that is not there, or has no such fix, is told with where to find those that are, and ends with 1', async () => {
    expect(await lab.cli.run('doctor', '--fix', '--force', 'held_long.0', '--reason', 'host is down')).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'fencegate: not_found: There is no such finding now.\nfencegate: next: fencegate doctor shows the findings with their ids, and what can be done about each\n',
    });
  });

  it('is shown with the id that --force wants', async () => {
    const held: typeof FINDING = { ...FINDING, id: 'held_long.1', code: 'held_long', resource: 'v/x', evidence: { needs_force: true }, fix: null };
    const { cli } = await front(async () => undefined, report([FINDING, held]));
    const { stdout } = await cli.run('doctor');
    expect(stdout).toContain('\nunknown_directory\n  id: unknown_directory.1\n');
    expect(stdout).toMatch(/^warning +held_long +v\/x +with --force\n(?:.*\n)*held_long v\/x\n {2}id: held_long\.1\n/m);
  });

  it('that goes away by itself does not keep the others from being mended', async () => {
    const asked: string[] = [];
    const { cli } = await front(
      async (request, response) => {
        const { finding_id: id } = JSON.parse(Buffer.concat(await request.toArray()).toString()) as { finding_id: string };
        asked.push(id);
        const [status, answer] = id.endsWith('1')
          ? [404, { code: 'not_found', detail: 'There is no such finding now.' }]
          : [200, { dry_run: false, steps: ['remove it'] }];
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
      },
      report([FINDING, { ...FINDING, id: 'unknown_directory.2' }]),
    );
    const { code, stdout, stderr } = await cli.run('doctor', '--fix');
    expect([code, stderr, asked]).toEqual([0, '', ['unknown_directory.1', 'unknown_directory.2']]);
    expect(stdout).toContain('\nfixed unknown_directory.2\n  remove it\n');
  });
});

function report(findings: DoctorReport['findings']): object {
  return { coordinator: { kind: 'embedded', state: 'connected' }, volumes: [], sessions: [], locks: [], findings };
}

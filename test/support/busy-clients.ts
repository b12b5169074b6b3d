import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { auditOf } from './history.ts';
import { attempt } from './http-client.ts';

/** Clients that write to the same few files as fast as they are answered, and remember what they were told. */

const FILES = ['shared/a.txt', 'shared/b.txt'] as const;
const LOG = 'shared/log.txt';
const REPEATED = 4_000;

export class BusyClients {
  readonly #clients: number;
  readonly #answered: { readonly resource: string; readonly operationId: string; readonly token: bigint }[] = [];
  readonly #appended: { readonly line: string; readonly answered: boolean }[] = [];
  readonly #directory: string;
  #writes = 0;
  #url = '';
  #running: Promise<unknown> = Promise.resolve();

  /** `directory` holds volume `v`. */
  constructor(directory: string, clients: number) {
    this.#directory = directory;
    this.#clients = clients;
  }

  get answers(): number {
    return this.#answered.length;
  }

  start(url: string): void {
    this.#url = url;
    this.#running = Promise.all(Array.from({ length: this.#clients }, (_, client) => this.#work(url, client)));
  }

  /** Resolves when every client has met a broken connection or `stop` was called. */
  async stop(): Promise<void> {
    this.#url = '';
    await this.#running;
  }

  async #work(url: string, client: number): Promise<void> {
    while (this.#url === url) {
      const write = ++this.#writes;
      const appends = write % 3 === 0;
      const resource = `v/${appends ? LOG : (FILES[write % FILES.length] ?? LOG)}`;
      const text = `client ${client} write ${write}\n`;
      const answer = await attempt(url, {
        method: appends ? 'PATCH' : 'PUT',
        path: `/v1/files/${resource}`,
        headers: appends ? { 'x-update-range': 'append', 'content-type': 'application/octet-stream' } : {},
        body: appends ? text : text.repeat(REPEATED),
      });
      const succeeded = answer !== null && answer.status < 300;
      if (appends) this.#appended.push({ line: text, answered: succeeded });
      if (succeeded)
        this.#answered.push({
          resource,
          operationId: String(answer.headers['x-operation-id']),
          token: BigInt(String(answer.headers['x-fencing-token'])),
        });
      if (answer === null) return;
    }
  }

  /** What does not hold of what they were told; asked while nobody writes. */
  async check(url: string): Promise<string[]> {
    const found: string[] = [];
    for (const file of FILES) found.push(...(await this.#checkWhole(url, `v/${file}`)));
    return [...found, ...this.#checkLog()];
  }

  /** The file is what the last committed record says, and every answered write has its record. */
  async #checkWhole(url: string, resource: string): Promise<string[]> {
    const [, ...path] = resource.split('/');
    const outcomes = new Map<string, { outcome: string; token: bigint; digest: string | null }>();
    for (const { action, operation_id: id, outcome, fencing_token: token, digest } of await auditOf(url, `volume=v&path=${path.join('/')}`)) {
      if (action !== 'put' || id === null || token === null) continue;
      outcomes.delete(id);
      outcomes.set(id, { outcome, token: BigInt(token), digest });
    }
    const committed = [...outcomes.values()].filter(({ outcome }) => outcome === 'committed').sort((a, b) => Number(a.token - b.token));
    const lost = this.#answered.filter((one) => one.resource === resource && outcomes.get(one.operationId)?.outcome !== 'committed');
    const digest = createHash('sha256').update(this.#read(resource)).digest('hex');
    return [
      ...lost.map(
        ({ operationId }) => `${resource}: ${operationId} was answered, but its record says ${outcomes.get(operationId)?.outcome ?? 'nothing'} (I4)`,
      ),
      ...(committed.at(-1)?.digest === digest || (committed.length === 0 && digest === EMPTY)
        ? []
        : [`${resource} is not what its last record says (I3)`]),
    ];
  }

  /** Case B8 over crashes: each answered line exactly once, each other at most once, and nothing that is no line. */
  #checkLog(): string[] {
    const counts = new Map<string, number>();
    for (const line of this.#read(`v/${LOG}`)
      .toString('utf8')
      .split(/(?<=\n)/))
      counts.set(line, (counts.get(line) ?? 0) + 1);
    const found = this.#appended.flatMap(({ line, answered }) => {
      const times = counts.get(line) ?? 0;
      counts.delete(line);
      return times === 1 || (times === 0 && !answered) ? [] : [`${JSON.stringify(line)} is ${times} times in the log, answered: ${answered}`];
    });
    counts.delete('');
    return [...found, ...[...counts.keys()].map((line) => `the log has ${JSON.stringify(line)}, which nobody wrote`)];
  }

  #read(resource: string): Buffer {
    try {
      return readFileSync(join(this.#directory, resource));
    } catch (thrown) {
      if (thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT') return Buffer.alloc(0);
      throw thrown;
    }
  }
}

const EMPTY = createHash('sha256').digest('hex');

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Answer, attempt, get, type HeldLease, lease, patiently, put } from './http-client.ts';
import { until } from './until.ts';
import { mayStay, type Others } from './volume-snapshot.ts';
import { type Content, DIRECTORY, tokenHeader, type WriteKind } from './write-kinds.ts';

/**
 * What clients did and were told, and what must therefore be true: the invariants of the write protocol as far as they show from
 * outside. `check` gives a line for each that does not hold.
 */

export interface AuditLine {
  readonly seq: number;
  readonly action: string;
  readonly resource: string | null;
  readonly outcome: string;
  readonly code: string | null;
  readonly status: number | null;
  readonly request_id: string | null;
  readonly operation_id: string | null;
  readonly lease_ref: string | null;
  readonly fencing_token: string | null;
  readonly high_water_mark: string | null;
  readonly digest: string | null;
  readonly etag_after: string | null;
  readonly count: number;
}

const WRITES = new Set(['put', 'mkdir', 'patch', 'append', 'upload', 'delete', 'move', 'copy']);

/** One request and the answer that came, if one did. */
export interface Attempt {
  readonly kind: WriteKind;
  readonly requestId: string;
  readonly lease: HeldLease | null;
  readonly done: Promise<Answer | null>;
  /** The same request under the same key; `null` where it had none. */
  readonly again: ((url: string) => Promise<Answer | null>) | null;
  /** `undefined` while the request is under way. */
  answer: Answer | null | undefined;
}

/** What must have become of a request that got no answer. */
export type Expected = 'before' | 'after' | 'either';

export class History {
  readonly #directory: string;
  readonly #attempts: Attempt[] = [];
  readonly #marks = new Map<string, bigint>();
  readonly #leaseOfToken = new Map<string, string>();
  #requests = 0;

  /** `directory` holds the volumes, each under its name. */
  constructor(directory: string) {
    this.#directory = directory;
  }

  get attempts(): readonly Attempt[] {
    return this.#attempts;
  }

  /** Makes what a kind of write finds, and takes a lease for it when `leased`. */
  async prepare(url: string, kind: WriteKind, leased: boolean): Promise<HeldLease | null> {
    for (const [resource, content] of kind.seeds) {
      const answer =
        content === DIRECTORY ? await patiently(url, { method: 'PUT', path: `/v1/files/${resource}/` }) : await put(url, resource, content);
      if (answer.status !== 201) throw new Error(`the seed ${resource} was not made: ${answer.status} ${answer.text}`);
    }
    return leased ? lease(url, kind.leased) : null;
  }

  /** Sends it; `onAnswer` is called when an answer came or the connection broke. */
  begin(url: string, kind: WriteKind, held: HeldLease | null, onAnswer: () => void = () => undefined): Attempt {
    const requestId = `attempt-${process.pid}-${++this.#requests}`;
    const request = held !== null && kind.withToken !== undefined ? kind.withToken(held.token) : kind.request;
    const token = held !== null && kind.withToken === undefined ? held.token : null;
    const headers = { ...request.headers, ...tokenHeader(token), 'x-request-id': requestId, 'idempotency-key': requestId };
    const made: Attempt = {
      kind,
      requestId,
      lease: held,
      answer: undefined,
      again: (later) => attempt(later, { ...request, headers: { ...headers, 'x-request-id': `${requestId}-again` } }),
      done: attempt(url, { ...request, headers }).then((answer) => {
        made.answer = answer;
        onAnswer();
        return answer;
      }),
    };
    this.#attempts.push(made);
    return made;
  }

  /** One that was sent by other means, and ended. */
  note(kind: WriteKind, requestId: string, held: HeldLease | null, answer: Answer | null): Attempt {
    const noted: Attempt = { kind, requestId, lease: held, answer, done: Promise.resolve(answer), again: null };
    this.#attempts.push(noted);
    return noted;
  }

  /** Every invariant, for the attempts given. They must have ended. */
  async check(url: string, attempts: readonly Attempt[], expected: (attempt: Attempt) => Expected, others: Others = 'ended'): Promise<string[]> {
    const found: string[] = [];
    for (const one of attempts) found.push(...(await this.#checkAttempt(url, one, expected(one))).map((line) => `${one.kind.name}: ${line}`));
    return [...found, ...(await this.checkWhole(url, others))];
  }

  /** What holds for the gateway as a whole: chain, tokens, marks, nothing left over (I2, I4, I5, I6). */
  async checkWhole(url: string, others: Others = 'ended'): Promise<string[]> {
    const found: string[] = [];
    const { json: chain } = await get(url, '/v1/audit/verify');
    if (chain['valid'] !== true) found.push(`the audit chain does not verify: ${JSON.stringify(chain)}`);
    const records = await auditOf(url);
    found.push(...this.#checkTokens(records));
    for (const resource of this.#resources()) found.push(...(await this.#checkMark(url, resource)));
    found.push(...(await this.leftovers(others)));
    return found;
  }

  /** A write after the fault goes through, with a token above every earlier one of its resource (or the lease that came back). */
  async writeNext(url: string, attempts: readonly Attempt[]): Promise<string[]> {
    const found: string[] = [];
    for (const { kind, lease: held } of attempts) {
      const answer = await patiently(url, kind.next(held?.token ?? null));
      if (answer.status > 299) found.push(`${kind.name}: the next write was refused: ${answer.status} ${answer.text}`);
      const token = answer.headers['x-fencing-token'];
      const resource = kind.leased.at(-1) ?? '';
      const mark = this.#marks.get(resource) ?? 0n;
      if (typeof token !== 'string') found.push(`${kind.name}: the next write's answer has no token`);
      else if (held === null ? BigInt(token) <= mark : token !== held.token)
        found.push(`${kind.name}: the next write has token ${token}, the mark was ${mark}`);
    }
    return found;
  }

  /** I5: nothing staged stays; one incarnation directory, the live one. What is tidied in the background gets its time. */
  async leftovers(others: Others = 'ended'): Promise<string[]> {
    const clean = (): boolean => this.#left(others).length === 0;
    await Promise.race([until(() => (clean() ? true : null)), new Promise((resolve) => setTimeout(resolve, TIDY_MS_MAX).unref())]);
    return this.#left(others);
  }

  #left(others: Others): string[] {
    return this.#volumes().flatMap((volume) => {
      const control = join(this.#directory, volume, '.fencegate');
      const names = readdirSync(control).filter((name) => name !== 'owner' && name !== 'stamp');
      const inside = names.flatMap((name) => readdirSync(join(control, name)));
      return [
        ...(names.length === 1 ? [] : [`${volume}/.fencegate has ${names.length} incarnation directories: ${names.join(' ')}`]),
        ...inside.filter((entry) => !mayStay(entry, others)).map((entry) => `${volume}/.fencegate: ${entry} is left`),
      ];
    });
  }

  #volumes(): string[] {
    return readdirSync(this.#directory).filter((name) => existsSync(join(this.#directory, name, '.fencegate')));
  }

  #resources(): string[] {
    return [...new Set(this.#attempts.flatMap(({ kind }) => [...kind.effects.keys()]))];
  }

  async #checkAttempt(url: string, one: Attempt, expected: Expected): Promise<string[]> {
    const { kind, requestId, answer } = one;
    const [found, tags] = [[] as string[], new Map<string, string>()];
    const world = await this.#world(url, kind, found, tags);
    const records = (await auditOf(url, `request_id=${requestId}`)).filter(({ action }) => WRITES.has(action));
    const operation = await get(url, `/v1/operations?request_id=${requestId}`);
    const succeeded = answer !== null && answer !== undefined && answer.status < 300;
    const wanted: Expected = succeeded
      ? 'after'
      : answer !== null && answer !== undefined && answer.json['code'] !== 'outcome_unknown'
        ? 'before'
        : expected;
    if (world === 'mixed') return [...found, 'the file is neither as before nor as after (I3)'];
    if (wanted !== 'either' && world !== wanted) found.push(`it is as ${world}, not as ${wanted}${succeeded ? ', though it was answered' : ''}`);
    const committed = records.filter(({ outcome }) => outcome === 'committed');
    if (world === 'after') {
      if (operation.status !== 200 || operation.json['outcome'] !== 'committed')
        found.push(`GET /v1/operations does not tell that it was committed: ${operation.text}`);
      if (new Set(committed.map(({ resource }) => resource)).size !== kind.records)
        found.push(`${kind.records} committed records expected: ${JSON.stringify(records)} (I4)`);
      if (new Set(committed.map(({ operation_id }) => operation_id)).size !== 1) found.push('its records name several operations');
      for (const { resource, etag_after: recorded } of committed) {
        const served = tags.get(resource ?? '');
        if (recorded !== null && served !== undefined && recorded !== served)
          found.push(`the record of ${resource} names the tag ${recorded}, the file has ${served} (I4)`);
      }
      if (one.again !== null) found.push(...checkReplay(await one.again(url), tags));
    } else {
      if (operation.status === 200 && operation.json['outcome'] !== 'aborted')
        found.push(`GET /v1/operations tells of what did not happen: ${operation.text}`);
      if (records.at(-1)?.outcome === 'committed') found.push('the last record says committed, but nothing was');
    }
    for (const { outcome, code, status } of records) {
      if ((outcome === 'committed') !== (code === null) || (outcome === 'committed') !== (status !== null && status < 300))
        found.push(`a record says ${outcome} with status ${status} and code ${code}`);
    }
    if (succeeded) found.push(...checkAnswer(answer, kind, committed));
    return found;
  }

  /** I3 for all names of one write together; the file system and the gateway must say the same. `tags`: of the files that are served. */
  async #world(url: string, kind: WriteKind, found: string[], tags: Map<string, string>): Promise<'before' | 'after' | 'mixed'> {
    let all: 'before' | 'after' | null = null;
    for (const [resource, { before, after }] of kind.effects) {
      const content = this.#contentOf(resource);
      const served = await get(url, `/v1/files/${resource}${content === DIRECTORY ? '/' : ''}`);
      if (content === null ? served.status !== 404 : served.status !== 200 || (content !== DIRECTORY && served.text !== content)) {
        found.push(`the gateway serves ${resource} otherwise than it is on the volume: ${served.status}`);
      }
      if (content !== null && content !== DIRECTORY) tags.set(resource, String(served.headers['etag']).replace('W/', ''));
      const state = content === before ? 'before' : content === after ? 'after' : 'mixed';
      if (state === 'mixed' || (all !== null && all !== state)) return 'mixed';
      all = state;
    }
    return all ?? 'mixed';
  }

  #contentOf(resource: string): Content {
    const path = join(this.#directory, resource);
    try {
      return statSync(path).isDirectory() ? DIRECTORY : readFileSync(path, 'utf8');
    } catch (thrown) {
      if (thrown instanceof Error && 'code' in thrown && (thrown.code === 'ENOENT' || thrown.code === 'ENOTDIR')) return null;
      throw thrown;
    }
  }

  /** I2, I7: the mark is never lower than any token ever seen on the resource. */
  async #checkMark(url: string, resource: string): Promise<string[]> {
    const { json } = await get(url, `/v1/admin/fences/${resource}`);
    const mark = json['high_water_mark'] === null ? 0n : BigInt(String(json['high_water_mark']));
    const before = this.#marks.get(resource) ?? 0n;
    this.#marks.set(resource, mark > before ? mark : before);
    return mark < before ? [`the mark of ${resource} fell from ${before} to ${mark} (I2)`] : [];
  }

  /** I6: a token is of one lease; on a resource the committed tokens never fall. */
  #checkTokens(records: readonly AuditLine[]): string[] {
    const found: string[] = [];
    const last = new Map<string, bigint>();
    for (const { outcome, action, fencing_token: text, lease_ref: ref, resource } of records) {
      if (outcome !== 'committed' || text === null || resource === null) continue;
      const token = BigInt(text);
      if (ref !== null) {
        if ((this.#leaseOfToken.get(text) ?? ref) !== ref) found.push(`token ${text} is of two leases (I6)`);
        this.#leaseOfToken.set(text, ref);
      }
      if (!WRITES.has(action)) continue;
      if (token < (last.get(resource) ?? 0n)) found.push(`the committed tokens of ${resource} fall: ${last.get(resource)}, then ${token} (I1)`);
      last.set(resource, token);
      const mark = this.#marks.get(resource) ?? 0n;
      if (token > mark) this.#marks.set(resource, token);
    }
    return found;
  }
}

const TIDY_MS_MAX = 5_000;

/** I4: the answer and the one record of it say the same. */
function checkAnswer(answer: Answer, kind: WriteKind, committed: readonly AuditLine[]): string[] {
  const found: string[] = [];
  if (committed.length !== kind.records) found.push(`an answered write has ${committed.length} records, not ${kind.records} (I4)`);
  if (committed.some(({ operation_id }) => operation_id !== answer.headers['x-operation-id']))
    found.push('the record is of another operation than the answer (I4)');
  if (!committed.some(({ fencing_token }) => fencing_token === answer.headers['x-fencing-token']))
    found.push('the record has another token than the answer (I4)');
  if (answer.body.length > 0) {
    const { digest } = answer.json as { digest?: { 'sha-256': string } | null };
    if (digest != null && !committed.some((record) => record.digest === digest['sha-256']))
      found.push('the record has another digest than the answer (I4)');
  }
  return found;
}

/** Who asks again under the key is told of what stands there. `tags`: of the files as they are served. */
function checkReplay(again: Answer | null, tags: ReadonlyMap<string, string>): string[] {
  if (again === null || again.status > 299 || again.headers['idempotency-replayed'] !== 'true')
    return [`under the same key it is not answered again: ${again?.status} ${again?.text}`];
  const told = again.text.match(/(?<="etag":)"\\"[^"]*\\""/g) ?? [];
  const named = [...told.map((text) => JSON.parse(text) as string), again.headers['etag'] ?? []].flat();
  const other = named.filter((tag) => ![...tags.values()].includes(tag));
  return other.map((tag) => `under the same key it is answered with the tag ${tag}, which no file has`);
}

/** Every record that matches, oldest first. */
export async function auditOf(url: string, query = ''): Promise<AuditLine[]> {
  const answer = await patiently(url, { method: 'GET', path: `/v1/audit?order=asc&${query}`, headers: { accept: 'application/x-ndjson' } });
  if (answer.status !== 200) throw new Error(`the audit log does not answer: ${answer.status} ${answer.text}`);
  return answer.text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as AuditLine);
}

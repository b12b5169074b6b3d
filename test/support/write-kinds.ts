import { formOf, type Sending } from './http-client.ts';

/** One write of each kind, with what it finds and what it leaves: the rows of every fault table. */

export const DIRECTORY = '<directory>';
/** The bytes of a file, `DIRECTORY`, or `null`: nothing there. */
export type Content = string | null;

export interface WriteKind {
  readonly name: string;
  /** What must be there before, in the order in which it can be made. */
  readonly seeds: readonly (readonly [resource: string, content: string])[];
  /** Each name that it changes, before and after. All or nothing. */
  readonly effects: ReadonlyMap<string, { readonly before: Content; readonly after: Content }>;
  readonly request: Sending;
  /** The same with its lease's token where that does not go into a header. */
  readonly withToken?: (token: string) => Sending;
  /** Names that a lease for this write covers. */
  readonly leased: readonly string[];
  /** Audit records of one such write that was committed. */
  readonly records: number;
  /** The bytes that it stages have no digest: recovery cannot show that they are whole, and drops them. */
  readonly unproven?: true;
  /** A write that must succeed afterwards, whatever became of this one. */
  readonly next: (token: string | null) => Sending;
}

/** Two volumes: `w` writes ranges in place. */
export const TWO_VOLUMES = 'volumes:\n  v:\n    path: "{dir}/v"\n  w:\n    path: "{dir}/w"\n    range_writes: in-place\n';

/** Long enough that a mixture of old and new could be seen. */
const OLD = 'old bytes. '.repeat(6_000);
const NEW = 'NEW! '.repeat(9_000);
const TAIL = 'tail of the file '.repeat(500);
const RANGE_AT = 1_000;

/** Those that store bytes: a full disk refuses them, and lets the others through. */
export const STORING = [
  'PUT that creates, and its parents',
  'PUT that replaces',
  'PUT with If-None-Match: *',
  'append',
  'append that creates',
  'range by copy-on-write',
  'range in place',
  'COPY',
  'upload of three files',
];

/** All kinds, on names below `v/<round>` and `w/<round>`. */
export function writeKinds(round: string): readonly WriteKind[] {
  const v = (name: string): string => `v/${round}/${name}`;
  const ranged = OLD.slice(0, RANGE_AT) + NEW + OLD.slice(RANGE_AT + NEW.length);
  return [
    kind('PUT that creates, and its parents', { name: `v/${round}-new/deep/er.txt`, after: NEW, request: whole() }),
    kind('PUT that replaces', { name: v('replace.txt'), before: OLD, after: NEW, request: whole() }),
    kind('PUT with If-None-Match: *', { name: v('only-once.txt'), after: NEW, request: whole({ 'if-none-match': '*' }) }),
    kind('append', { name: v('append.txt'), before: OLD, after: OLD + TAIL, request: part('append', TAIL) }),
    kind('append that creates', { name: v('append-new.txt'), after: TAIL, request: part('append', TAIL) }),
    { ...kind('range by copy-on-write', { name: v('range.txt'), before: OLD, after: ranged, request: part(rangeOf(NEW), NEW) }), unproven: true },
    kind('range in place', { name: `w/${round}/range.txt`, before: OLD, after: ranged, request: part(rangeOf(NEW), NEW) }),
    kind('DELETE', { name: v('delete.txt'), before: OLD, after: null, request: { method: 'DELETE' } }),
    moveKind(v('move/from.txt'), v('move/to.txt'), null),
    moveKind(v('move-over/from.txt'), v('move-over/to.txt'), NEW),
    copyKind(v('copy/from.txt'), v('copy/to.txt')),
    uploadKind(v('upload')),
    directoryKind('mkdir', v('made'), 'PUT'),
    directoryKind('rmdir', v('removed'), 'DELETE'),
  ];
}

type Bare = Omit<Sending, 'path'>;

function whole(headers: Record<string, string> = {}): Bare {
  return { method: 'PUT', headers, body: NEW };
}

function part(range: string, body: string): Bare {
  return { method: 'PATCH', headers: { 'x-update-range': range, 'content-type': 'application/octet-stream' }, body };
}

function rangeOf(bytes: string): string {
  return `bytes=${RANGE_AT}-${RANGE_AT + bytes.length - 1}`;
}

interface OneName {
  readonly name: string;
  readonly before?: string;
  readonly after: Content;
  readonly request: Bare;
}

function kind(name: string, { name: resource, before, after, request }: OneName): WriteKind {
  return {
    name,
    seeds: before === undefined ? [] : [[resource, before]],
    effects: new Map([[resource, { before: before ?? null, after }]]),
    request: { ...request, path: filePath(resource) },
    leased: [resource],
    records: 1,
    next: nextPut(resource),
  };
}

function moveKind(from: string, to: string, over: Content): WriteKind {
  const body = { from, to, overwrite: over !== null };
  return {
    name: over === null ? 'MOVE' : 'MOVE over a file',
    seeds: [[from, OLD], ...(over === null ? [] : ([[to, over]] as const))],
    effects: new Map([
      [from, { before: OLD, after: null }],
      [to, { before: over, after: OLD }],
    ]),
    request: transfer('/v1/moves', body),
    withToken: (token) => transfer('/v1/moves', { ...body, from_token: token, to_token: token }),
    leased: [from, to],
    records: 2,
    next: nextPut(to),
  };
}

function copyKind(from: string, to: string): WriteKind {
  const body = { from, to, overwrite: false };
  return {
    name: 'COPY',
    seeds: [[from, OLD]],
    effects: new Map([[to, { before: null, after: OLD }]]),
    request: transfer('/v1/copies', body),
    withToken: (token) => transfer('/v1/copies', { ...body, to_token: token }),
    leased: [to],
    records: 1,
    next: nextPut(to),
  };
}

function uploadKind(directory: string): WriteKind {
  const names = ['one.txt', 'two.txt', 'three.txt'] as const;
  const resources = names.map((name) => `${directory}/${name}`);
  const [one = '', two = '', three = ''] = resources;
  return {
    name: 'upload of three files',
    seeds: [[two, OLD]],
    effects: new Map([
      [one, { before: null, after: `1${NEW}` }],
      [two, { before: OLD, after: `2${NEW}` }],
      [three, { before: null, after: `3${NEW}` }],
    ]),
    request: {
      method: 'POST',
      path: `${filePath(directory)}/`,
      ...formOf({ [names[0]]: `1${NEW}`, [names[1]]: `2${NEW}`, [names[2]]: `3${NEW}` }),
    },
    leased: resources,
    records: 3,
    next: nextPut(two),
  };
}

function directoryKind(name: 'mkdir' | 'rmdir', resource: string, method: string): WriteKind {
  const path = `${filePath(resource)}/`;
  const made = name === 'mkdir';
  return {
    name,
    seeds: made ? [] : [[resource, DIRECTORY]],
    effects: new Map([[resource, { before: made ? null : DIRECTORY, after: made ? DIRECTORY : null }]]),
    request: { method, path },
    leased: [resource],
    records: 1,
    next: (token) => ({ method: 'PUT', path, headers: tokenHeader(token) }),
  };
}

function nextPut(resource: string): WriteKind['next'] {
  return (token) => ({ method: 'PUT', path: filePath(resource), headers: tokenHeader(token), body: 'the next write' });
}

export function tokenHeader(token: string | null): Record<string, string> {
  return token === null ? {} : { 'x-fencing-token': token };
}

function filePath(resource: string): string {
  return `/v1/files/${resource}`;
}

function transfer(path: string, body: object): Sending {
  return { method: 'POST', path, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

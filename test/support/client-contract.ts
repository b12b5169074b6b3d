import { AUDIT_ACTIONS } from '../../src/domain/audit-record.ts';
import { ERROR_CODES } from '../../src/domain/errors.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { LOCK_EVENT_TYPES } from '../../src/domain/lock-events.ts';
import {
  AdminSession,
  BreakAnswer,
  BreakBody,
  CoordinatorState,
  Doctor,
  Fence,
  FixAnswer,
  RebaseAnswer,
  VolumeReady,
} from '../../src/http/schemas/admin.ts';
import { AuditQuery, Record as AuditRecord, Chain, RecordPage } from '../../src/http/schemas/audit.ts';
import { CycleMemberBody, Problem } from '../../src/http/schemas/common.ts';
import { Entry, FileAnswerBody, Listing, Operation, TransferBody, UploadAnswerBody, VolumeList } from '../../src/http/schemas/files.ts';
import { AcquireBody, CreateSessionBody, Heartbeat, Lease, Lock, LockList, LocksQuery, Party, Session } from '../../src/http/schemas/leases.ts';
import { STATUS_TABLE } from '../../src/http/status.ts';

/** The part of JSON Schema that the gateway's schemas use. */
interface Schema {
  readonly type?: string | readonly string[] | undefined;
  readonly description?: string | undefined;
  readonly enum?: readonly unknown[] | undefined;
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[] | undefined;
  readonly items?: Schema | undefined;
  readonly properties?: Readonly<Record<string, Schema>> | undefined;
  readonly required?: readonly string[] | undefined;
}

const HEADER = '// Made from the schemas of the gateway: npx vitest run test/unit/client/contract.test.ts -u\n';
const LINE_MAX = 150;

const OBJECTS: Readonly<Record<string, Schema>> = {
  Problem,
  CycleMember: CycleMemberBody,
  Lease,
  AcquireLease: AcquireBody,
  CreateSession: CreateSessionBody,
  Session,
  Heartbeat,
  LockParty: Party,
  Lock,
  LockPage: LockList,
  LocksQuery,
  WrittenFile: FileAnswerBody,
  WrittenFiles: UploadAnswerBody,
  Entry,
  Listing,
  Transfer: TransferBody,
  Volume: VolumeList.properties.volumes.items,
  VolumeList,
  Operation,
  AuditRecord,
  AuditPage: RecordPage,
  AuditQuery,
  AuditChain: Chain,
  BreakLock: BreakBody,
  BreakReport: BreakAnswer,
  AdminSession,
  CoordinatorState,
  VolumeReadiness: VolumeReady,
  DoctorFinding: Doctor.properties.findings.items,
  DoctorReport: Doctor,
  FixReport: FixAnswer,
  Fence,
  RebaseReport: RebaseAnswer,
};

const values = (schema: Schema): readonly unknown[] => schema.enum ?? [];
const LISTS: Readonly<Record<string, readonly unknown[]>> = {
  LeaseMode: values(Lease.properties.mode).filter((mode) => mode !== null),
  LeaseState: values(Lease.properties.state),
  LockEventType: LOCK_EVENT_TYPES,
  AuditAction: AUDIT_ACTIONS,
  AuditOutcome: values(AuditRecord.properties.outcome),
  FenceLevel: values(FileAnswerBody.properties.fence_level),
  Durability: values(FileAnswerBody.properties.durability),
};
const names = new Map<Schema, string>(Object.entries(OBJECTS).map(([name, schema]) => [schema, name]));
const listNames = new Map<string, string>([
  [JSON.stringify(ERROR_CODES), 'ErrorCode'],
  ...Object.entries(LISTS).map(([name, list]): [string, string] => [JSON.stringify(list), name]),
]);

/** `answers.ts`: what goes over the wire, as types. */
export function answersFile(): string {
  const lists = Object.entries(LISTS).map(([name, list]) => `export type ${name} =${union(list.map(literal), `export type ${name} =;`.length)};`);
  const objects = Object.entries(OBJECTS).map(([name, schema]) => `export interface ${name} ${members(schema, '')}`);
  return `${HEADER}import type { ErrorCode } from './codes.ts';\n\n${[...lists, ...objects].join('\n\n')}\n`;
}

/** `codes.ts`: every code that the gateway can refuse with. */
export function codesFile(): string {
  const rows = ERROR_CODES.map(
    (code) => `  /** ${STATUS_TABLE[code].title}. ${STATUS_TABLE[code].advice} */\n  ${code}: ${STATUS_TABLE[code].status},`,
  );
  return [
    HEADER,
    '/** The closed list of codes of the gateway, each with its HTTP status. */',
    `export const STATUS_BY_CODE = {\n${rows.join('\n')}\n} as const;`,
    '',
    'export type ErrorCode = keyof typeof STATUS_BY_CODE;\n',
  ].join('\n');
}

/** `bounds.ts`: the numbers of the contract that a client keeps to. Durations in ms. */
export function boundsFile(): string {
  const { leaseTtlMsDefault, leaseWaitMsMax, watchCommentMs } = LIMITS;
  const rows = Object.entries({ leaseTtlMsDefault, leaseWaitMsMax, watchCommentMs }).map(([name, value]) => `  ${name}: ${grouped(value)},`);
  return `${HEADER}\n/** Durations in ms. */\nexport const BOUNDS = {\n${rows.join('\n')}\n} as const;\n`;
}

function grouped(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, '_');
}

function members({ properties = {}, required = [] }: Schema, indent: string): string {
  const lines = Object.entries(properties).flatMap(([name, schema]) => {
    const description = schema.description ?? schema.anyOf?.find((one) => one.description !== undefined)?.description;
    const note = description === undefined ? [] : [`${indent}  /** ${description} */`];
    const optional = required.includes(name) ? '' : '?';
    const key = /^\w+$/.test(name) ? name : `'${name}'`;
    return [...note, `${indent}  readonly ${key}${optional}: ${typeOf(schema, `${indent}  `)};`];
  });
  return `{\n${lines.join('\n')}\n${indent}}`;
}

function typeOf(schema: Schema, indent: string): string {
  const name = names.get(schema);
  if (name !== undefined) return name;
  if (schema.enum !== undefined) return enumeration(schema.enum);
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.anyOf !== undefined) return choice(schema.anyOf, indent);
  if (Array.isArray(schema.type)) return [...new Set(schema.type.map((type: string) => typeOf({ ...schema, type }, indent)))].join(' | ');
  switch (schema.type) {
    case 'integer':
    case 'number':
      return 'number';
    case 'array':
      return `readonly ${elementOf(typeOf(schema.items ?? {}, indent))}[]`;
    case 'object':
      return schema.properties === undefined ? 'Readonly<Record<string, unknown>>' : members(schema, indent);
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type;
    default:
      throw new Error(`a schema of an unknown form: ${JSON.stringify(schema)}`);
  }
}

function choice(schemas: readonly Schema[], indent: string): string {
  if (schemas.every((schema) => schema.const !== undefined)) return enumeration(schemas.map((schema) => schema.const));
  return schemas.map((schema) => typeOf(schema, indent)).join(' | ');
}

function enumeration(list: readonly unknown[]): string {
  const name = listNames.get(JSON.stringify(list.filter((value) => value !== null)));
  if (name !== undefined) return list.includes(null) ? `${name} | null` : name;
  return list.map(literal).join(' | ');
}

function elementOf(type: string): string {
  return type.includes(' | ') && !type.startsWith('{') ? `(${type})` : type;
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : String(value);
}

/** On one line where it fits, as the formatter would have it. */
function union(parts: readonly string[], before: number): string {
  const line = ` ${parts.join(' | ')}`;
  return before + line.length <= LINE_MAX ? line : parts.map((part) => `\n  | ${part}`).join('');
}

import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseDocument } from 'yaml';
import { readEnvironment } from '../../../src/config/environment.ts';

const FOLDER = new URL('../../../docker/', import.meta.url);
const files = readdirSync(FOLDER).filter((name) => /^compose.*\.yaml$/.test(name));

interface Service {
  readonly environment?: Readonly<Record<string, string | number>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly secrets?: readonly string[];
  readonly depends_on?: readonly string[];
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes?: object;
  readonly secrets?: object;
}

function parsed(file: string): Compose {
  return parseDocument(readFileSync(new URL(file, FOLDER), 'utf8'), { merge: true }).toJS() as Compose;
}

/** What compose gives a container while nothing of its own environment is set: `${NAME:-default}` is the default. */
const given = (value: string | number): string => String(value).replace(/\$\{\w+:-([^}]*)\}/g, '$1');

/** Those of the gateway, by service. */
function settingsOf(file: string): Map<string, Record<string, string>> {
  const document = parseDocument(readFileSync(new URL(file, FOLDER), 'utf8'), { merge: true, uniqueKeys: true });
  expect([...document.errors, ...document.warnings]).toEqual([]);
  const { services } = document.toJS() as { readonly services: Readonly<Record<string, Service>> };
  const ours = Object.entries(services).map(([name, { environment = {} }]) => {
    const settings = Object.entries(environment).filter(([variable]) => variable.startsWith('FENCEGATE_'));
    return [name, Object.fromEntries(settings.map(([variable, value]) => [variable, given(value)]))] as const;
  });
  return new Map(ours.filter(([, settings]) => Object.keys(settings).length > 0));
}

describe('the compose files', () => {
  it('are there for both coordinators', () => {
    expect(files.sort()).toEqual(['compose.yaml', 'compose.zookeeper.yaml']);
  });

  it.each(files)('docker/%s is YAML whose settings the gateway knows and accepts', (file) => {
    const services = settingsOf(file);
    expect([...services.keys()]).toEqual(['fencegate']);
    for (const settings of services.values()) {
      const problems: string[] = [];
      readEnvironment(settings, problems);
      expect(problems).toEqual([]);
    }
  });

  it('docker/compose.zookeeper.yaml connects to each server that it starts', () => {
    const file = 'compose.zookeeper.yaml';
    const servers = Object.keys(parsed(file).services).filter((name) => name !== 'fencegate');
    const connect = settingsOf(file).get('fencegate')?.['FENCEGATE_ZOOKEEPER_CONNECT'];
    expect(connect).toBe(servers.map((name) => `${name}:2181`).join(','));
  });

  it('docker/compose.zookeeper.yaml tells each server its own number, and all of them the same ensemble with that number for it', () => {
    const servers = Object.entries(parsed('compose.zookeeper.yaml').services).filter(([name]) => name !== 'fencegate');
    const numbers = servers.map(([name, { environment = {} }]) => `server.${environment['ZOO_MY_ID']}=${name}:2888:3888;2181`);
    for (const [, { environment = {} }] of servers) expect(environment['ZOO_SERVERS']).toBe(numbers.join(' '));
    expect(servers.length % 2).toBe(1);
  });

  it.each(files)('docker/%s publishes the port and keeps the data directory of the image, and names nothing that it does not declare', (file) => {
    const { services, volumes = {}, secrets = {} } = parsed(file);
    const image = readFileSync(new URL('Dockerfile', FOLDER), 'utf8');
    const port = /^EXPOSE (\d+)$/m.exec(image)?.[1];
    const problems: string[] = [];
    const { FENCEGATE_PORT } = readEnvironment({ FENCEGATE_VOLUMES: 'v=' }, problems);
    expect([port, problems]).toEqual([String(FENCEGATE_PORT), []]);
    expect(services['fencegate']?.ports).toEqual([`${port}:${port}`]);
    expect(services['fencegate']?.volumes).toContain(`data:${/^ENV FENCEGATE_DATA_DIR=(\S+)$/m.exec(image)?.[1]}`);
    const used = Object.values(services);
    const mounted = used.flatMap((one) => one.volumes ?? []).map((mount) => mount.split(':')[0] ?? '');
    expect(mounted.filter((name) => !name.startsWith('.')).sort()).toEqual(Object.keys(volumes).sort());
    expect(used.flatMap((one) => one.secrets ?? [])).toEqual(Object.keys(secrets));
    expect(used.flatMap((one) => one.depends_on ?? []).filter((name) => !(name in services))).toEqual([]);
  });
});

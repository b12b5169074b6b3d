import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseDocument } from 'yaml';
import { readEnvironment } from '../../../src/config/environment.ts';

const FOLDER = new URL('../../../docker/', import.meta.url);
const files = readdirSync(FOLDER).filter((name) => /^compose.*\.yaml$/.test(name));

interface Service {
  readonly environment?: Readonly<Record<string, string | number>>;
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
    const { services } = parseDocument(readFileSync(new URL(file, FOLDER), 'utf8'), { merge: true }).toJS() as { readonly services: object };
    const servers = Object.keys(services).filter((name) => name !== 'fencegate');
    const connect = settingsOf(file).get('fencegate')?.['FENCEGATE_ZOOKEEPER_CONNECT'];
    expect(connect).toBe(servers.map((name) => `${name}:2181`).join(','));
  });
});

import { describe, expect, it } from 'vitest';
import { resolveServers } from '../../../src/zookeeper/resolve-servers.ts';

const SERVERS = [
  { host: '127.0.0.1', port: 2181 },
  { host: '::1', port: 2182 },
  { host: '127.0.0.3', port: 2183 },
];

describe('the addresses of an ensemble', () => {
  it('come in an order of chance, each once, and those of IPv6 without brackets', async () => {
    const chances = [0.5, 0.1, 0.9];
    const { addresses, problems } = await resolveServers([...SERVERS, ...SERVERS], { random: () => chances.shift() ?? 1, last: null });
    expect([addresses, problems]).toEqual([['::1:2182', '127.0.0.1:2181', '127.0.0.3:2183'], []]);
  });

  it('begin with others than the one that the session was at', async () => {
    const { addresses } = await resolveServers(SERVERS, { random: () => 0.5, last: '127.0.0.1:2181' });
    expect(addresses.at(-1)).toBe('127.0.0.1:2181');
  });

  it('are those that can be found; the others are told of', async () => {
    const { addresses, problems } = await resolveServers([{ host: 'no-such-host.invalid', port: 1 }, ...SERVERS.slice(0, 1)], {
      random: () => 0,
      last: null,
    });
    expect(addresses).toEqual(['127.0.0.1:2181']);
    expect(problems).toEqual([expect.stringContaining('no-such-host.invalid cannot be resolved')]);
  });
});

import { BlockList, isIP } from 'node:net';

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/** 127.0.0.0/8, ::1 in any spelling, IPv4-mapped loopback, and `localhost`; any other name may lead anywhere. */
export function isLoopback(host: string): boolean {
  const bare = withoutBrackets(host);
  const family = isIP(bare);
  if (family === 0) return bare.toLowerCase() === 'localhost';
  return LOOPBACK.check(bare, family === 4 ? 'ipv4' : 'ipv6');
}

/** `[::1]`, as URLs write it -> `::1`. */
export function withoutBrackets(host: string): string {
  return host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
}

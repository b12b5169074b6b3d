import { isIP } from 'node:net';

/** A server of the ensemble as it was configured: the name is looked up again whenever a connection is made. */
export interface ZkServer {
  readonly host: string;
  readonly port: number;
}

export interface ConnectString {
  readonly servers: readonly ZkServer[];
  /** `''`, or an absolute path below which everything of ours lies. */
  readonly chroot: string;
}

const PORT_DEFAULT = 2181;
const SERVERS_MAX = 32;
const HOST = /^[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252})$/;
const BRACKETED = /^\[([0-9A-Fa-f:.]+)\](?::([0-9]{1,5}))?$/;
const PLAIN = /^([^:[\]]+)(?::([0-9]{1,5}))?$/;

/**
 * `host:port,host:port/chroot`, as every ZooKeeper client takes it; IPv6 addresses in brackets, port 2181 when none is given.
 * @returns what is wrong, as a text, or the parts.
 */
export function parseConnect(text: string): ConnectString | string {
  const slash = text.indexOf('/');
  const list = slash < 0 ? text : text.slice(0, slash);
  const chroot = slash < 0 || text.length === slash + 1 ? '' : text.slice(slash);
  if (chroot !== '' && !/^(\/[^/\p{Cc}]+)+$/u.test(chroot)) return `${chroot} is not an absolute path of a node`;
  if (/\/\.{1,2}(\/|$)/.test(chroot)) return `${chroot} has a part that ZooKeeper refuses`;
  const servers: ZkServer[] = [];
  for (const item of list.split(',').map((part) => part.trim())) {
    const server = parseServer(item);
    if (server === null) return `"${item}" is not host:port`;
    servers.push(server);
  }
  if (servers.length > SERVERS_MAX) return `more than ${SERVERS_MAX} servers`;
  return { servers, chroot };
}

function parseServer(item: string): ZkServer | null {
  const bracketed = BRACKETED.exec(item);
  const [, host = '', portText] = bracketed ?? PLAIN.exec(item) ?? [];
  const port = portText === undefined ? PORT_DEFAULT : Number(portText);
  if (port < 1 || port > 65_535) return null;
  if (bracketed !== null) return isIP(host) === 6 ? { host, port } : null;
  return HOST.test(host) ? { host, port } : null;
}

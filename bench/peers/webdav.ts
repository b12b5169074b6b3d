import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ProcessTree } from '../measure/process-tree.ts';
import { command } from '../place/command.ts';
import { freePort } from '../place/port.ts';
import { startServer } from '../place/server.ts';
import type { Peer, Stage } from '../stage.ts';
import { firstLine } from './etcd.ts';
import type { HttpPeer } from './http-peer.ts';
import { answers, nginxVersion, startNginx } from './nginx.ts';

const LIGHTTPD = '/usr/sbin/lighttpd';
const APACHE = '/usr/sbin/apache2';
const DAV_EXT = '/usr/lib/nginx/modules/ngx_http_dav_ext_module.so';

/** Locks in a SQLite database: the best of the peers whose locks outlive the process. It syncs no file. */
export const lighttpd: Peer<HttpPeer> = {
  id: 'lighttpd',
  needs: [
    { command: LIGHTTPD, package: 'lighttpd' },
    { command: '/usr/lib/lighttpd/mod_webdav.so', package: 'lighttpd-mod-webdav' },
  ],
  start: async (directory, stage) => {
    const configuration = (port: number): string => `
server.modules = ("mod_webdav")
server.document-root = "${directory}/files"
server.upload-dirs = ("${directory}/staged")
server.errorlog = "${directory}/error.log"
server.bind = "127.0.0.1"
server.port = ${port}
server.max-keep-alive-requests = 1000000000
webdav.activate = "enable"
webdav.is-readonly = "disable"
webdav.sqlite-db-name = "${directory}/locks.sqlite"
`;
    return started('lighttpd', LIGHTTPD, ['-D', '-f'], directory, configuration, firstLine(await command(LIGHTTPD, ['-v'])), stage);
  },
};

/** Locks in a DBM file that one process at a time may use; with more than one client it soon answers errors. It syncs no file. */
export const apache: Peer<HttpPeer> = {
  id: 'apache',
  needs: [{ command: APACHE, package: 'apache2-bin' }],
  start: async (directory, stage) => {
    const configuration = (port: number): string => `
ServerRoot "${directory}"
ServerName localhost
Listen 127.0.0.1:${port}
PidFile "${directory}/pid"
ErrorLog "${directory}/error.log"
LogLevel crit
${['mpm_event', 'authz_core', 'dav', 'dav_fs'].map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`).join('\n')}
${process.getuid?.() === 0 ? 'User www-data\nGroup www-data' : ''}
MaxKeepAliveRequests 0
KeepAliveTimeout 600
DocumentRoot "${directory}/files"
DavLockDB "${directory}/locks/db"
<Directory "${directory}/files">
  Dav On
  Require all granted
</Directory>
`;
    await mkdir(join(directory, 'locks'));
    return started('apache', APACHE, ['-D', 'FOREGROUND', '-f'], directory, configuration, firstLine(await command(APACHE, ['-v'])), stage);
  },
};

/** Locks in the memory of the server, gone with it. It syncs no file. */
export function nginxDavExt(workers: number): Peer<HttpPeer> {
  return {
    id: 'nginx+locks',
    needs: [
      { command: 'nginx', package: 'nginx-extras' },
      { command: DAV_EXT, package: 'libnginx-mod-http-dav-ext' },
    ],
    start: async (directory, stage) => {
      const parts = {
        top: `load_module ${DAV_EXT};`,
        http: 'dav_ext_lock_zone zone=locks:16m;',
        location: 'dav_ext_methods PROPFIND OPTIONS LOCK UNLOCK; dav_ext_lock zone=locks;',
      };
      return { ...(await startNginx({ name: 'nginx+locks', directory, workers, parts }, stage)), version: `${await nginxVersion()}, dav-ext` };
    },
  };
}

async function started(
  name: string,
  server: string,
  args: readonly string[],
  directory: string,
  configuration: (port: number) => string,
  version: string,
  stage: Stage,
): Promise<HttpPeer> {
  const port = await freePort();
  const file = join(directory, 'configuration');
  for (const sub of ['files', 'staged']) await mkdir(join(directory, sub));
  await writeFile(file, configuration(port));
  // Some of these give up root for a user of their own.
  if (process.getuid?.() === 0) await command('chown', ['-R', 'www-data:www-data', directory]);
  const pid = await startServer(
    { name, command: server, args: [...args, file], env: {}, workingDirectory: directory, isReady: () => answers(port) },
    stage.endings,
  );
  return { port, version, processes: new ProcessTree(pid), target: (path) => `/${path}` };
}

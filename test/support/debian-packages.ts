import { spawnSync } from 'node:child_process';

/** Programs and files that tests use, and the Debian package that has each. The one list. */
const NEEDED: Readonly<Record<string, string>> = {
  curl: 'curl',
  openssl: 'openssl',
  nginx: 'nginx-light',
  strace: 'strace',
  script: 'bsdutils',
  faketime: 'faketime',
  zsh: 'zsh',
  fish: 'fish',
  java: 'default-jre-headless',
  '/usr/share/java/zookeeper.jar': 'zookeeper',
  '/usr/lib/python3/dist-packages/kazoo/__init__.py': 'python3-kazoo',
};

/** With these more is shown; where they cannot be had, a test says that it is not. */
const WELCOME: Readonly<Record<string, string>> = { 'lowntfs-3g': 'ntfs-3g' };

/** A guest with an NFS server and two clients (`nfs-lab`), and what its clients are cut off with. */
const FOR_NFS: Readonly<Record<string, string>> = {
  'linux.uml': 'user-mode-linux',
  'rpc.nfsd': 'nfs-kernel-server',
  modprobe: 'kmod',
  ip: 'iproute2',
  'mkfs.ext4': 'e2fsprogs',
  setquota: 'quota',
};

/** Installs them. @returns why they cannot be had here, or `null`. */
export function installForNfs(): string | null {
  if (process.getuid?.() !== 0) return 'it needs root';
  const packages = missingOf(FOR_NFS);
  return packages.length === 0 || install(packages) ? null : `it needs the packages ${packages.join(' ')}`;
}

/** Installs what is missing, or throws one line that says what to install. */
export function installPackages(): void {
  const welcome = missingOf(WELCOME);
  if (welcome.length > 0) install(welcome);
  const packages = missingOf(NEEDED);
  if (packages.length === 0 || install(packages)) return;
  throw new Error(`the tests need ${packages.join(', ')}; install with: apt-get install ${packages.join(' ')}`);
}

function missingOf(programs: Readonly<Record<string, string>>): string[] {
  const isThere = (name: string): boolean =>
    spawnSync('sh', ['-c', `PATH=$PATH:/usr/sbin:/sbin; command -v ${name} || test -e ${name}`]).status === 0;
  const missing = Object.entries(programs).filter(([name]) => !isThere(name));
  return missing.map(([, name]) => name);
}

/** A mirror that does not answer must not hang the tests. */
const INSTALL_MS_MAX = 600_000;

/** False when it cannot be done here. */
function install(packages: readonly string[]): boolean {
  if (process.getuid?.() !== 0) return false;
  const command = `apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -q -y --no-install-recommends ${packages.join(' ')}`;
  return spawnSync('sh', ['-c', command], { stdio: 'ignore', timeout: INSTALL_MS_MAX }).status === 0;
}

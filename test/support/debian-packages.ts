import { spawnSync } from 'node:child_process';

/** Programs that tests run, and the Debian package that has each. The one list. */
const NEEDED: Readonly<Record<string, string>> = { curl: 'curl', openssl: 'openssl' };

/** Installs what is missing, or throws one line that says what to install. */
export function installPackages(): void {
  const missing = Object.entries(NEEDED).filter(([program]) => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0);
  if (missing.length === 0) return;
  const packages = missing.map(([, name]) => name);
  const install = `apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends ${packages.join(' ')}`;
  const installed = process.getuid?.() === 0 && spawnSync('sh', ['-c', install], { stdio: 'ignore' }).status === 0;
  if (!installed) throw new Error(`the tests need ${packages.join(', ')}; install with: apt-get install ${packages.join(' ')}`);
}

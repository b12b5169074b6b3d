import type { Config } from '../config/config.ts';

/** One line that says why the gateway did not start and, where that is known, what to change. */
export function startProblem(thrown: unknown, config: Pick<Config, 'host' | 'port'>): string {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if (!('syscall' in error) || (error.syscall !== 'listen' && error.syscall !== 'bind')) continue;
    switch ('code' in error ? error.code : undefined) {
      case 'EADDRINUSE':
        return `port ${config.port} on ${config.host} is in use; set FENCEGATE_PORT to another one`;
      case 'EACCES':
        return `port ${config.port} needs rights that this process does not have; set FENCEGATE_PORT to one above 1023`;
      case 'EADDRNOTAVAIL':
      case 'ENOTFOUND':
        return `${config.host} is no address of this machine; set FENCEGATE_HOST to one that is`;
    }
  }
  return thrown instanceof Error ? oneLine(thrown.message) : String(thrown);
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, ' ');
}

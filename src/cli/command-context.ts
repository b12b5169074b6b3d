import type { Environment } from '../config/environment.ts';
import type { Screen } from './screen.ts';
import type { Compose, Host } from './serve.ts';

/** What every command gets of its surroundings. */
export interface CommandContext {
  /** Of this process, as it was at the start. */
  readonly environment: Environment;
  readonly screen: Screen;
  readonly host: Host;
  readonly compose: Compose;
}

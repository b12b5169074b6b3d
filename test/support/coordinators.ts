import { LockLab } from './lock-lab.ts';
import { ZookeeperLab } from './zookeeper-lab.ts';

/** The lock service behaves the same over each of these: `describe.each(COORDINATORS)`. */
export const COORDINATORS = [
  { coordinator: 'embedded', LockLab },
  { coordinator: 'zookeeper', LockLab: ZookeeperLab },
];

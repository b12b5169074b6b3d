import { type LabOptions, LockLab } from './lock-lab.ts';
import { ZookeeperLab } from './zookeeper-lab.ts';

/**
 * The lock service behaves the same over each of these: `describe.each(COORDINATORS)`. A file that puts others in before it imports
 * such a suite runs it over those.
 */
export const COORDINATORS: { readonly coordinator: string; readonly LockLab: new (options?: Omit<LabOptions, 'coordination'>) => LockLab }[] = [
  { coordinator: 'embedded', LockLab },
  { coordinator: 'zookeeper', LockLab: ZookeeperLab },
];

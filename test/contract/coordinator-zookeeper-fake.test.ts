import { coordinatorContract } from '../support/coordinator-contract.ts';
import { ZookeeperLab } from '../support/zookeeper-lab.ts';

coordinatorContract('zookeeper (ensemble in memory)', () => new ZookeeperLab());

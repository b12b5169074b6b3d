import { LockLab } from '../support/lock-lab.ts';
import { coordinatorContract } from '../support/coordinator-contract.ts';

coordinatorContract('embedded', () => new LockLab());

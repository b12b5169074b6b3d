import { coordinatorContract } from '../support/coordinator-contract.ts';
import { LockLab } from '../support/lock-lab.ts';

coordinatorContract('embedded', () => new LockLab());

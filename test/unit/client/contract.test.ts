import { describe, expect, it } from 'vitest';
import { answersFile, boundsFile, codesFile } from '../../support/client-contract.ts';

const CONTRACT = '../../../src/client/contract';

/** The client imports nothing of the server; what both must agree on is written from the server's schemas, and compared here. */
describe('the contract of the client', () => {
  it('has the answers and requests of the schemas', async () => {
    await expect(answersFile()).toMatchFileSnapshot(`${CONTRACT}/answers.ts`);
  });

  it('has the codes of the table of statuses', async () => {
    await expect(codesFile()).toMatchFileSnapshot(`${CONTRACT}/codes.ts`);
  });

  it('has the bounds of the limits', async () => {
    await expect(boundsFile()).toMatchFileSnapshot(`${CONTRACT}/bounds.ts`);
  });
});

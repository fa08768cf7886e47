import { err } from '../../../../shared/model/result.ts';
import type { MintingSource } from '../source_port.ts';

/** Why the control plane gives no value of a borrowed secret. */
export const BORROWED_WHY =
  'a program on the machine of each developer gives it, for requests of bindings and connectors only; see "svc secret borrow --help" there';

/** The control plane has no value, and nobody can have it run a program. */
export const BORROWED: MintingSource<'borrowed'> = {
  describe: () => 'what a program on a machine gives there',
  plan: () => ({
    identity: 'whoever is signed in to that program',
    scope: [],
    audience: null,
    providerUrl: null,
  }),
  checkKey: async () => null,
  mint: async () => err({ reason: 'failed', message: BORROWED_WHY }),
};

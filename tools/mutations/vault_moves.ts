import type { Mutation } from '../mutation.ts';

const RECEIVE = 'worker/services/vault/moves/receive_moved.ts';
const OF_MOVES = 'worker/services/vault/moves/moves.test.ts';
const PLAN = 'cli/vault/move/move_plan.ts';
const OF_PLAN = 'cli/vault/move/move_plan.test.ts';
const OF_COMMAND = 'cli/vault/move/move_command.test.ts';
const row = 'Vault moves';

/** Checks of the move of a local vault into a hosted one (decision 0137). */
export const VAULT_MOVE_MUTATIONS: readonly Mutation[] = [
  {
    row,
    holds: 'a ticket is for one user',
    file: RECEIVE,
    text: "return { owner: userId, path: 'vault-move', version: until };",
    replacement: "return { owner: userId.slice(0, 3), path: 'vault-move', version: until };",
    tests: [OF_MOVES],
  },
  {
    row,
    holds: 'a ticket ends after its hour',
    file: RECEIVE,
    text: '|| until <= nowSeconds(context)) return null;',
    replacement: '|| until <= 0) return null;',
    tests: [OF_MOVES],
  },
  {
    row,
    holds: 'a value is for the user that it was sealed for',
    file: RECEIVE,
    text: "protectedHeader.typ !== VAULT_MOVE_TYP || protectedHeader['user'] !== userId",
    replacement: "protectedHeader.typ !== VAULT_MOVE_TYP || protectedHeader['user'] === ''",
    tests: [OF_MOVES],
  },
  {
    row,
    holds: 'a value that is there is not replaced',
    file: RECEIVE,
    text: "if (known.state !== 'absent' || moved.action === 'compare') return ok(known);",
    replacement: "if (known.state === 'same' || moved.action === 'compare') return ok(known);",
    tests: [OF_MOVES],
  },
  {
    row,
    holds: 'a secret that came meanwhile is not replaced',
    file: 'worker/services/vault/secrets.ts',
    text: 'return input.onlyNew === true && !storing.value.created ? err(refuseTaken(input.path)) : ok(storing);',
    replacement: 'return ok(storing);',
    tests: [OF_MOVES],
  },
  {
    row,
    holds: 'a comparison does not give the proof of a holder',
    file: 'worker/services/vault/moves/value_digest.ts',
    text: "return canonicalJson(['svc vault move', label, ...thing]);",
    replacement: "return canonicalJson(['svc vault move', label.slice(8), ...thing]);",
    tests: [OF_MOVES],
  },
  {
    row,
    holds: 'what a server says is there counts only with its proof',
    file: 'cli/vault/move/send_values.ts',
    text: 'if (reply.proof === proof) return reply.state;',
    replacement: "if (proof !== '') return reply.state;",
    tests: [OF_COMMAND],
  },
  {
    row,
    holds: 'the key of a move is signed',
    file: 'cli/vault/move/destination.ts',
    text: "verified?.protectedHeader['typ'] === VAULT_MOVE_KEY_TYP",
    replacement: "verified?.protectedHeader['typ'] !== ''",
    tests: [OF_COMMAND],
  },
  {
    row,
    holds: 'the control plane has the key that the person named',
    file: 'cli/vault/move/destination.ts',
    text: 'if (named !== undefined && named !== x) {',
    replacement: "if (named === '') {",
    tests: [OF_COMMAND],
  },
  {
    row,
    holds: 'a vault is not moved to itself',
    file: 'cli/vault/move/destination.ts',
    text: 'if (payload.control_plane_id === own) throw toItself();',
    replacement: "if (own === '') throw toItself();",
    tests: [OF_COMMAND],
  },
  {
    row,
    holds: 'a binding does not go where its reference means another secret',
    file: PLAN,
    text: "return secret.state === 'new' || secret.state === 'there' ? null : `its secret ${path} is not moved`;",
    replacement: "return secret.state !== 'stays' ? null : `its secret ${path} is not moved`;",
    tests: [OF_PLAN],
  },
  {
    row,
    holds: 'what was changed after the comparison is not removed',
    file: 'cli/vault/move/remove_moved.ts',
    text: 'if (before.get(item.id) !== after.get(item.id)) {',
    replacement: "if (item.id === '') {",
    tests: [OF_PLAN],
  },
];

import type { Mutation } from './mutation.ts';

const ROW = 'Inactive connectors, 8 No way round a connector';
const SERVED = 'Secrets that serve connectors';
const WORKER = 'worker/inactive_connectors.test.ts';

/** The checks of connectors without a credential, and of secrets that serve connectors (docs/decisions/0063). */
export const CONNECTOR_MUTATIONS: readonly Mutation[] = [
  {
    row: ROW,
    holds: 'a connector that never had a credential changes nothing',
    file: 'shared/model/connector.ts',
    text: 'if (connector.inactive === true) continue;',
    replacement: '',
    tests: ['shared/resolve/resolve.test.ts'],
  },
  {
    row: ROW,
    holds: 'a stored credential activates its connector',
    file: 'worker/store/migrations.ts',
    text: "CREATE TRIGGER connector_activated_by_insert AFTER INSERT ON connector_credentials WHEN NEW.state = 'ready'",
    replacement:
      "CREATE TRIGGER connector_activated_by_insert AFTER INSERT ON connector_credentials WHEN NEW.state = 'never'",
    tests: [WORKER],
  },
  {
    row: ROW,
    holds: 'an authorisation activates its connector',
    file: 'worker/store/migrations.ts',
    text: "CREATE TRIGGER connector_activated_by_update AFTER UPDATE ON connector_credentials WHEN NEW.state = 'ready'",
    replacement:
      "CREATE TRIGGER connector_activated_by_update AFTER UPDATE ON connector_credentials WHEN NEW.state = 'never'",
    tests: [WORKER],
  },
  {
    row: ROW,
    holds: 'a connector that has lost its credential stays active, and its operations are explained as refused',
    file: 'worker/services/connectors/connector_records.ts',
    text: '...(row.connector.activatedAt === null && { inactive: true as const }),',
    replacement: '...(row.credential === null && { inactive: true as const }),',
    tests: [WORKER],
  },
  {
    row: ROW,
    holds: 'a connector that has lost its credential stays active at the sidecars',
    file: 'worker/services/sidecars/snapshot.ts',
    text: 'connectors: recordsOf(connectors.filter(({ connector }) => connector.activatedAt !== null)),',
    replacement: 'connectors: recordsOf(connectors.filter(({ credential }) => credential !== null)),',
    tests: [WORKER],
  },
  {
    row: ROW,
    holds: 'a sidecar of an earlier version gets no field that it does not know, so that it accepts the snapshot',
    file: 'worker/services/sidecars/snapshot.ts',
    text: '...(knowsInactive && {',
    replacement: '...({',
    tests: [WORKER],
  },
  {
    row: ROW,
    holds: 'a run of an inactive connector is refused before anybody is asked',
    file: 'sidecar/connector/recognise.ts',
    text: 'if (connector.inactive === true) return ok({ match: named, request: refuseInactive(connector), givenInputs });',
    replacement: '',
    tests: ['sidecar/connector/operation_runner.test.ts'],
  },
  {
    row: SERVED,
    holds: 'a request that was held open while its operation became active is not sent by a binding',
    file: 'sidecar/exchange/in_force.ts',
    text: 'if (!isDeepStrictEqual(specsAt(policy, host), specsAt(decided, host))) return false;',
    replacement: '',
    tests: ['sidecar/exchange/in_force.test.ts'],
  },
  {
    row: SERVED,
    holds: 'a personal token decides where a stored secret goes only with host-bindings:write',
    file: 'worker/services/connectors/connector_credentials.ts',
    text: "if (input.kind === 'api_key' && input.credential_ref !== undefined) {",
    replacement: "if (input.kind === 'oauth2' && input.client_id === '') {",
    tests: ['worker/tokens/personal_tokens.test.ts'],
  },
  {
    row: SERVED,
    holds:
      'a personal token installs no version that sends a stored secret to further hosts without host-bindings:write',
    file: 'worker/services/connectors/connectors.ts',
    text: 'if (!isServed || added.length === 0) return ok(undefined);',
    replacement: 'if (isServed || added.length === 0) return ok(undefined);',
    tests: ['worker/tokens/personal_tokens.test.ts'],
  },
  {
    row: SERVED,
    holds: 'a signing key serves no connector',
    file: 'worker/services/connectors/connector_credentials.ts',
    text: 'if (secret !== null) return (await isSigningKey(context, ownerId, path.value)) ? err(invalidReference(SIGNS)) : path;',
    replacement: 'if (secret !== null) return path;',
    tests: [WORKER],
  },
  {
    row: SERVED,
    holds: 'a secret is offered only if bindings send it to every host of all operations',
    file: 'shared/resolve/sent_secrets.ts',
    text: 'if (hosts.length === 0 || unsentHosts(bindings, reference, hosts).length > 0) return [];',
    replacement: 'if (unsentHosts(bindings, reference, hosts).length === hosts.length) return [];',
    tests: ['cli/connectors/connector_commands.test.ts'],
  },
  {
    row: SERVED,
    holds: 'a secret outlives the connector that it serves',
    file: 'worker/store/connectors.ts',
    text: 'if (!isReservedVaultPath(path)) return [];',
    replacement: '',
    tests: [WORKER],
  },
  {
    row: SERVED,
    holds: 'a connector is served only by a secret of its owner',
    file: 'worker/services/connectors/connector_credentials.ts',
    text: 'const secret = await findSecret(context.database, { ownerId, path: path.value });',
    replacement:
      'const secret = ownerId === "" ? await findSecret(context.database, { ownerId, path: path.value }) : path;',
    tests: [WORKER],
  },
  {
    row: SERVED,
    holds: 'a sidecar refuses a connector that names the credential of another connector or of an MCP server',
    file: 'shared/wire/connectors.ts',
    text: 'return path === connectorVaultPath(fqn) || parseOwnVaultPath(path).ok;',
    replacement: 'return path !== fqn;',
    tests: ['worker/connectors.test.ts'],
  },
  {
    row: SERVED,
    holds: 'a worker of an earlier version deletes no secret that a binding or a connector uses',
    file: 'worker/store/migrations.ts',
    text: "SELECT RAISE(ABORT, 'the secret is in use')",
    replacement: "SELECT RAISE(IGNORE) WHERE OLD.path = ''",
    tests: ['worker/store/migrate.test.ts'],
  },
];

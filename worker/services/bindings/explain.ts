import { type Explanation, explainRequest as explain, type Known } from '../../../shared/explain/explain.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { parseVaultReference, VAULT_SCHEME } from '../../../shared/model/vault_path.ts';
import type { ChosenSecret } from '../../../shared/model/account_choice.ts';
import { toClientCertificate } from '../../../shared/wire/hosts/client_certificates.ts';
import { toHostBinding } from '../../../shared/wire/host_binding.ts';
import type { ExplainInput } from '../../../shared/wire/host_bindings.ts';
import { findStored } from '../../store/secrets.ts';
import { type Caller, ownerName, visibleOwners } from '../../kernel/caller.ts';
import { stateOf, toInstalled } from '../connectors/connector_records.ts';
import { chooseAccounts } from '../../../shared/resolve/account_choice.ts';
import { credentialPaths, hostBindingsOn, listAllHostBindings } from './host_bindings.ts';
import { listAllClientCertificates } from './client_certificates.ts';
import { listAllTunnelHosts } from './tunnel_hosts.ts';
import { findSharedSecrets, listSharedBindings } from '../sharing/shared_bindings.ts';
import { listUsableConnectors } from '../sharing/shared_connectors.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';

/** Explains what the proxy would do with a caller's request, and why. Refuses with `invalid_input`. */
export async function explainRequest(
  context: ServiceContext,
  caller: Caller,
  input: ExplainInput,
): Promise<Result<Explanation, ApiError>> {
  // Without bindings, this checks whether the request can be explained, and gives its canonical host.
  const bare = explain({ bindings: [], isStored: () => false }, input);
  const chosen = chosenOf(input);
  const known = bare.ok ? await gatherKnown(context, caller, bare.value.host) : null;
  const usable = known === null ? ok(undefined) : await checkChosen(context, caller, chosen);
  if (!usable.ok) return usable;
  const explained = known === null ? bare : explain({ ...known, chosen }, input);
  if (explained.ok) return ok(explained.value);
  const { field, message } = explained.error;
  return err(apiError('invalid_input', `${field} ${message}`, { fields: [{ field, message }] }));
}

function chosenOf({ use_secrets: wanted = [] }: ExplainInput): readonly ChosenSecret[] {
  return wanted.flatMap(({ reference, by, from }) => {
    const path = parseVaultReference(reference);
    return path.ok ? [{ path: path.value, by, from }] : [];
  });
}

/** A session would not start with a secret that no binding uses, so nothing is explained for it either. */
async function checkChosen(
  context: ServiceContext,
  caller: Caller,
  chosen: readonly ChosenSecret[],
): Promise<Result<void, ApiError>> {
  if (chosen.length === 0) return ok(undefined);
  const bindings = await listAllHostBindings(context, visibleOwners(caller));
  const choice = chooseAccounts(chosen, bindings.map(toHostBinding));
  if (choice.ok) return ok(undefined);
  const field = 'use_secrets';
  return err(apiError('invalid_input', `${field} ${choice.error}`, { fields: [{ field, message: choice.error }] }));
}

/** The policy for a host: the bindings that may apply, every connector, and which of their credentials are usable. */
async function gatherKnown(context: ServiceContext, caller: Caller, host: string): Promise<Known> {
  const owners = visibleOwners(caller);
  const patterns = patternsAround(host);
  const bindings = await hostBindingsOn(context, owners, patterns);
  const shared = await listSharedBindings(context, caller, patterns);
  const sharedPaths = (await findSharedSecrets(context, shared)).map(({ path }) => `enterprise ${path}`);
  const connectors = await listUsableConnectors(context, caller);
  const certificates = await listAllClientCertificates(context, caller.userId);
  const paths = certificates.map(({ credential_ref: reference }) => reference.slice(VAULT_SCHEME.length));
  const stored = await findStored(context.database, owners, [...bindings.flatMap(credentialPaths), ...paths]);
  const ready = connectors.flatMap((row) =>
    stateOf(row) === 'ready' && row.credential !== null ? row.credential : [],
  );
  const places = new Set([
    ...[...stored, ...ready].map(({ ownerId, path }) => `${ownerName(ownerId)} ${path}`),
    ...sharedPaths,
  ]);
  return {
    bindings: [...bindings, ...shared.map(({ record }) => record)].map((record) => toHostBinding(record)),
    connectors: connectors.map((row) => toInstalled(row)),
    tunnelled: await listAllTunnelHosts(context, owners),
    certificates: certificates.map(toClientCertificate),
    isStored: ({ owner, path }) => places.has(`${owner} ${path}`),
  };
}

/** The patterns that match the host, and the wildcard below it, which people often take for a match. */
function patternsAround(host: string): string[] {
  const labels = host.split('.');
  return [host, ...labels.map((_, at) => `*.${labels.slice(at).join('.')}`)];
}

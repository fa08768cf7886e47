import { installReply } from '../../../shared/wire/connectors/connectors.ts';
import { hostBindingRecord } from '../../../shared/wire/host_binding.ts';
import { mcpServerRecord } from '../../../shared/wire/mcp/mcp_servers.ts';
import { sourceRecord } from '../../../shared/wire/secret_sources.ts';
import { clientCertificateRecord } from '../../../shared/wire/hosts/client_certificates.ts';
import { tunnelHostRecord } from '../../../shared/wire/hosts/tunnel_hosts.ts';
import { BORROWED_KIND } from '../../../shared/model/source_kind.ts';
import { inputOf } from '../../bindings/binding_file.ts';
import { listClientCertificates } from '../../certificates/client_certificates.ts';
import type { Call } from '../../command_line.ts';
import { CliError } from '../../exit_codes.ts';
import type { HttpClient } from '../../terminal/http_client.ts';
import type { Destination } from './destination.ts';
import type { MoveItem } from './move_plan.ts';
import {
  certificateInput,
  connectorKey,
  hasOwnKey,
  listValues,
  secretKey,
  serverInput,
  serverKey,
} from './moved_things.ts';
import { sendValues, type SentValue } from './send_values.ts';
import { readContents, type VaultContents } from './vault_contents.ts';

/** Why things were not made there, by their ids here. */
export type Failures = ReadonlyMap<string, string>;

/**
 * Makes what is new there: secrets first, then what refers to them, then the credentials of connectors and servers. What the
 * other control plane refuses is left out, with what needs it; a failure ends the move, which can be repeated.
 */
export async function carryOut(
  call: Call,
  there: Destination,
  here: VaultContents,
  plan: readonly MoveItem[],
): Promise<Failures> {
  const failures = new Map<string, string>();
  const isNew = (id: string): boolean => plan.some((item) => item.id === id && item.state === 'new');
  const wanted = narrow(here, isNew);
  await sendSecrets(call, there, wanted, failures);
  const refused = new Set(wanted.secrets.filter(({ id }) => failures.has(id)).map(({ ref }) => ref));
  await makeThings(there.client, wanted, refused, failures);
  const known = await readContents(there.client);
  const values = listValues({ ...wanted, secrets: [] }, known);
  noteRefused(await sendValues(call, there, 'store', values), ownersOf(wanted), failures);
  return failures;
}

/** Only what is to be made. */
function narrow(here: VaultContents, isNew: (id: string) => boolean): VaultContents {
  return {
    secrets: here.secrets.filter(({ id }) => isNew(id)),
    sources: here.sources,
    bindings: here.bindings.filter(({ id }) => isNew(id)),
    tunnelHosts: here.tunnelHosts.filter(({ id }) => isNew(id)),
    certificates: (here.certificates ?? []).filter(({ id }) => isNew(id)),
    connectors: here.connectors.filter(({ id }) => isNew(id)),
    servers: here.servers.filter(({ id }) => isNew(id)),
  };
}

async function sendSecrets(
  call: Call,
  there: Destination,
  wanted: VaultContents,
  failures: Map<string, string>,
): Promise<void> {
  const values = listValues({ ...wanted, connectors: [], servers: [] }, wanted);
  const answers = await sendValues(call, there, 'store', values);
  noteRefused(answers, new Map(wanted.secrets.map(({ id, path }) => [secretKey(path), id])), failures);
  for (const { id, path, description } of wanted.secrets) {
    const source = wanted.sources.find((each) => each.path === path)?.source;
    if (source?.kind !== BORROWED_KIND) continue;
    const body = { path, source, ...(description !== null && { description }) };
    await attempt(failures, id, () => there.client.call('POST', '/v1/secret-sources', sourceRecord, { body }));
  }
}

async function makeThings(
  client: HttpClient,
  wanted: VaultContents,
  refused: ReadonlySet<string>,
  failures: Map<string, string>,
): Promise<void> {
  for (const binding of wanted.bindings) {
    if (needsRefused(failures, binding.id, refused, [binding.credential_ref, binding.session_token_ref])) continue;
    const body = inputOf(binding);
    await attempt(failures, binding.id, () => client.call('POST', '/v1/host-bindings', hostBindingRecord, { body }));
  }
  for (const { id, host } of wanted.tunnelHosts) {
    await attempt(failures, id, () => client.call('POST', '/v1/tunnel-hosts', tunnelHostRecord, { body: { host } }));
  }
  await makeCertificates(client, wanted, refused, failures);
  for (const connector of wanted.connectors) {
    const { id, credential, spec } = connector;
    if (needsRefused(failures, id, refused, [credential.ref])) continue;
    await attempt(failures, id, async () => {
      const made = await client.call('POST', '/v1/connectors', installReply, {
        body: spec,
        query: { owner: 'personal' },
      });
      if (hasOwnKey(connector) || credential.state === 'missing') return;
      const body = { kind: 'api_key', credential_ref: credential.ref };
      await client.callEmpty('PUT', `/v1/connectors/${made.id}/credential`, { body });
    });
  }
  const { servers } = await readContents(client);
  for (const server of wanted.servers.filter(({ name }) => !servers.some((other) => other.name === name))) {
    const body = serverInput(server);
    await attempt(failures, server.id, () => client.call('POST', '/v1/mcp-servers', mcpServerRecord, { body }));
  }
}

async function makeCertificates(
  client: HttpClient,
  { certificates }: VaultContents,
  refused: ReadonlySet<string>,
  failures: Map<string, string>,
): Promise<void> {
  const there = (await listClientCertificates(client)) ?? [];
  for (const certificate of certificates ?? []) {
    const { id, host, credential_ref: reference } = certificate;
    // Another record of the host would replace it.
    if (there.some((other) => other.host === host)) failures.set(id, 'another one came there meanwhile');
    else if (!needsRefused(failures, id, refused, [reference])) {
      const body = certificateInput(certificate);
      await attempt(failures, id, () =>
        client.call('POST', '/v1/client-certificates', clientCertificateRecord, { body }),
      );
    }
  }
}

function needsRefused(
  failures: Map<string, string>,
  id: string,
  refused: ReadonlySet<string>,
  references: readonly (string | undefined)[],
): boolean {
  const missing = references.find((reference) => reference !== undefined && refused.has(reference));
  if (missing === undefined) return false;
  failures.set(id, `its secret ${missing} was refused`);
  return true;
}

/** Notes a refusal of the control plane; what is no refusal ends the move. */
async function attempt(failures: Map<string, string>, id: string, make: () => Promise<unknown>): Promise<void> {
  try {
    await make();
  } catch (error) {
    if (!(error instanceof CliError) || error.apiCode === null) throw error;
    failures.set(id, error.message);
  }
}

/** The things here that the values of connectors and servers belong to. */
function ownersOf({ connectors, servers }: VaultContents): ReadonlyMap<string, string> {
  return new Map([
    ...connectors.map(({ id, fqn }) => [connectorKey(fqn), id] as const),
    ...servers.flatMap(({ id, name, credentials }) =>
      credentials.map((credential) => [serverKey(name, credential.name), id] as const),
    ),
  ]);
}

function noteRefused(
  answers: ReadonlyMap<string, SentValue>,
  owners: ReadonlyMap<string, string>,
  failures: Map<string, string>,
): void {
  for (const [key, answer] of answers) {
    if (answer === 'same' || answer === 'stored') continue;
    const why = typeof answer === 'string' ? 'another value came there meanwhile' : answer.problem;
    failures.set(owners.get(key) ?? key, why);
  }
}

import { mcpReference, referencesOf } from '../../shared/mcp/references.ts';
import { mcpVaultPath, type McpServer } from '../../shared/model/mcp_server.ts';
import { mcpCredentialName } from '../../shared/wire/mcp/mcp_server_fields.ts';
import { mcpCredentialReply, type McpServerRecord, toMcpServer } from '../../shared/wire/mcp/mcp_servers.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { giveConsentHere, hasConsentHere } from './mcp_consent_here.ts';
import type { OwnerOption } from '../command_options.ts';
import { findMcpServer } from './mcp_lookup.ts';
import { serversAfterChange } from './mcp_machine.ts';
import { readSecret, type SecretSource } from '../terminal/read_secret.ts';

export type McpCredentialOptions = SecretSource & OwnerOption & { readonly value?: true };

/** Shorter credentials are not masked in a server's replies: they would match by chance. */
const SHORTEST_SCRUBBED_BYTES = 8;

/** `svc mcp credential set SERVER NAME`. */
export async function setMcpCredential(call: Call<McpCredentialOptions>): Promise<undefined> {
  const { options, print } = call;
  const [wanted = '', name = ''] = call.args;
  if (call.args.length > 2 || options.value !== undefined) throw refuseArgument();
  const client = controlClient(call.context, options);
  const server = await findMcpServer(client, wanted, options.owner);
  const problem = mcpCredentialName.safeParse(name).error?.issues[0];
  if (problem !== undefined) throw new CliError(EXIT.usage, `NAME ${problem.message}`);
  const value = await readSecret(call.context, options);
  const wasRun = await hasConsentHere(call, toMcpServer(server));
  const body = { env_var_name: name, secret_value: value };
  const reply = await client.call('POST', `/v1/mcp-servers/${server.id}/credentials`, mcpCredentialReply, { body });
  if (Buffer.byteLength(value) < SHORTEST_SCRUBBED_BYTES) {
    print.warn(
      `this credential has fewer than ${SHORTEST_SCRUBBED_BYTES} bytes: it is not masked if a reply contains it`,
    );
  }
  if (value.trim() !== value)
    print.warn('this credential begins or ends with white space: check that this is intended');
  await giveConsentHere(call, wasRun ? withReference(server, name) : null);
  const reference = mcpReference(server.id, name);
  print.data(reply, () => (print.person ? `stored ${name} for ${server.name}\n` : `${reference}\n`));
}

/** The server after the credential is stored: a local server gets the variable, unless another value already uses it. */
function withReference(record: McpServerRecord, name: string): McpServer {
  const server = toMcpServer(record);
  if (server.mode === 'remote' || referencesOf(server).includes(mcpVaultPath(server.id, name))) return server;
  return { ...server, env: { ...server.env, [name]: mcpReference(server.id, name) } };
}

function refuseArgument(): CliError {
  return new CliError(
    EXIT.usage,
    'a secret cannot be given on the command line: the process list and the shell history would show it',
    [
      'Type it at the prompt (svc mcp credential set SERVER NAME), pipe it (--stdin), or read it from a file (--file FILE).',
      'Treat the value as exposed: replace it at the service that issued it.',
    ],
  );
}

/** `svc mcp credential unset SERVER NAME`. */
export async function unsetMcpCredential(call: Call<OwnerOption>): Promise<undefined> {
  const { print } = call;
  const [wanted = '', name = ''] = call.args;
  const client = controlClient(call.context, call.options);
  const server = await findMcpServer(client, wanted, call.options.owner);
  const known = server.credentials.filter(({ set }) => set).map((credential) => credential.name);
  if (!known.includes(name)) {
    const stored = known.length === 0 ? 'none is stored' : `stored: ${known.join(', ')}`;
    throw new CliError(EXIT.failed, `${server.name} has no stored credential ${JSON.stringify(name)}`, [stored]);
  }
  await client.callEmpty('DELETE', `/v1/mcp-servers/${server.id}/credentials/${encodeURIComponent(name)}`);
  await serversAfterChange(call);
  if (print.person || print.json) {
    print.data({ deleted: name }, () => `deleted the credential ${name} of ${server.name}\n`);
  }
}

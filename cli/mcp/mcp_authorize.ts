import { z } from 'zod';
import {
  type McpAuthorizationInput,
  mcpAuthorizeReply,
  type McpAuthorizeReply,
} from '../../shared/wire/mcp/mcp_authorization.ts';
import { mcpServerRecord, type McpServerRecord } from '../../shared/wire/mcp/mcp_servers.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { type ClientSecretOptions, clientSecret } from '../connectors/connector_authorize.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { type HttpClient, type RawReply, errorOfReply } from '../terminal/http_client.ts';
import type { OwnerOption } from '../command_options.ts';
import { findMcpServer } from './mcp_lookup.ts';
import { noteTokensLeft, serversAfterChange } from './mcp_machine.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { parseJson } from '../../shared/model/json.ts';
import { askYes } from '../terminal/ask.ts';

export interface McpAuthorizeOptions extends OwnerOption, ClientSecretOptions {
  readonly clientId?: string;
  readonly clientAuthentication?: 'post' | 'basic' | 'private_key_jwt';
  readonly scope?: readonly string[];
  readonly addScope?: readonly string[];
  readonly authorizationHost?: readonly string[];
  readonly forget?: boolean;
  readonly wait: boolean;
}

const POLL_MS = 2_000;

/** `svc mcp authorize SERVER`: prints where to sign in, and waits. */
export async function authorizeMcpServer(call: Call<McpAuthorizeOptions>): Promise<undefined> {
  const { context, options } = call;
  const client = controlClient(context, options);
  const server = await findMcpServer(client, call.args[0] ?? '', options.owner);
  await (options.forget === true ? forget(call, client, server) : signIn(call, client, server));
}

async function signIn(call: Call<McpAuthorizeOptions>, client: HttpClient, server: McpServerRecord): Promise<void> {
  const { options, print } = call;
  if (server.mode !== 'remote') {
    throw new CliError(EXIT.usage, `${server.name} is a local server and has no sign-in`, [
      `Set its credentials with: svc mcp credential set ${server.name} NAME`,
    ]);
  }
  const body = await inputOf(call);
  const reply = await begin(call, client, server, body);
  if (!options.wait) {
    print.data(reply, () => formatGuide(server, reply));
    return;
  }
  print.note(formatGuide(server, reply).trimEnd());
  const ready = await waitForAuthorisation(call, client, server, reply);
  await serversAfterChange(call);
  print.data(ready.authorization, () => `authorised ${server.name}\n`);
}

/** Starts the authorisation. If it involves other hosts, the person must agree to them first. */
async function begin(
  call: Call<McpAuthorizeOptions>,
  client: HttpClient,
  server: McpServerRecord,
  input: McpAuthorizationInput,
): Promise<McpAuthorizeReply> {
  const { authorizationHost: named = [] } = call.options;
  const body = { ...input, ...(named.length > 0 && { authorization_hosts: [...named] }) };
  const raw = await client.send('POST', `/v1/mcp-servers/${server.id}/authorize`, { body });
  if (raw.status === 200) return readReply(client, raw);
  const hosts = findUnconfirmedHosts(raw);
  if (hosts === null) throw errorOfReply('the control plane', raw);
  if (!(await isAgreed(call, server, hosts))) {
    const { message, exitCode } = errorOfReply('the control plane', raw);
    const flags = hosts.map((host) => `--authorization-host ${host}`).join(' ');
    throw new CliError(exitCode, message, [`To agree: svc mcp authorize ${server.name} ${flags}`]);
  }
  const agreed = { ...input, authorization_hosts: [...hosts] };
  return client.call('POST', `/v1/mcp-servers/${server.id}/authorize`, mcpAuthorizeReply, { body: agreed });
}

function readReply({ origin }: HttpClient, { text }: RawReply): McpAuthorizeReply {
  const reply = mcpAuthorizeReply.safeParse(parseJson(text));
  if (reply.success) return reply.data;
  throw new CliError(EXIT.failed, `${origin} answered in a format that this svc does not know`);
}

const unconfirmed = z.object({
  error: z.object({
    code: z.literal('authorization_server_unconfirmed'),
    details: z.object({ hosts: z.array(z.string()).min(1) }),
  }),
});

/** The hosts that need consent; null for any other refusal. */
function findUnconfirmedHosts({ text }: RawReply): readonly string[] | null {
  return unconfirmed.safeParse(parseJson(text)).data?.error.details.hosts ?? null;
}

/** Asks at a terminal, showing the server's host and the other hosts. */
async function isAgreed(
  { context, print }: Call,
  { name, url }: McpServerRecord,
  hosts: readonly string[],
): Promise<boolean> {
  if (!context.interactive || print.json) return false;
  const own = url !== null && URL.canParse(url) ? new URL(url).host : 'another host';
  print.warn(
    toPrintable(
      `${name} is at ${own} but signs in through ${hosts.join(', ')}. This server receives the access that you grant there.`,
    ),
  );
  // Ctrl-C and end of input count as no.
  return askYes(context, 'Is this the right place to sign in for it?');
}

async function forget(call: Call, client: HttpClient, { id, name, authorization }: McpServerRecord): Promise<void> {
  await client.callEmpty('DELETE', `/v1/mcp-servers/${id}/authorize`);
  await serversAfterChange(call);
  if (call.print.person || call.print.json) {
    call.print.data({ forgotten: id }, () => `deleted the authorisation of ${name}\n`);
  }
  if (authorization !== null) noteTokensLeft(call);
}

async function inputOf(call: Call<McpAuthorizeOptions>): Promise<McpAuthorizationInput> {
  const { clientId, clientAuthentication, scope, addScope, publicClient, clientSecretStdin } = call.options;
  const scopes = {
    ...(scope !== undefined && { scopes: [...scope] }),
    ...(addScope !== undefined && { add_scopes: [...addScope] }),
  };
  if (clientId === undefined) {
    if (publicClient === undefined && clientSecretStdin === undefined && clientAuthentication === undefined)
      return scopes;
    throw new CliError(EXIT.usage, '--client-id is missing: the other client options need it');
  }
  if (clientAuthentication === 'private_key_jwt' && clientSecretStdin !== true) {
    throw new CliError(
      EXIT.usage,
      '--client-secret-stdin is missing: private_key_jwt reads the private key from stdin',
      [
        `svc mcp authorize ${call.args[0] ?? ''} --client-id ${clientId} --client-authentication private_key_jwt --client-secret-stdin < key.pem`,
      ],
    );
  }
  const secret = await clientSecret(call);
  return {
    client_id: clientId,
    ...(secret !== null && { client_secret: secret }),
    ...(clientAuthentication !== undefined && { client_authentication: clientAuthentication }),
    ...scopes,
  };
}

function formatGuide({ name }: McpServerRecord, reply: McpAuthorizeReply): string {
  const [link, at] = [toPrintable(reply.authorization_url), toPrintable(reply.authorization_server)];
  return `To authorise ${name} at ${at}, open this link in your browser:\n\n  ${link}\n\n`;
}

/** Waits until the server is authorised or has a new access token. */
async function waitForAuthorisation(
  { context }: Call,
  client: HttpClient,
  { id, name, authorization: before }: McpServerRecord,
  { expires_at: end }: McpAuthorizeReply,
): Promise<McpServerRecord> {
  const looks = Math.ceil((Date.parse(end) - context.now()) / POLL_MS) + 1;
  for (let look = 0; look < looks && !context.stop.aborted; look += 1) {
    const now = await client.call('GET', `/v1/mcp-servers/${id}`, mcpServerRecord);
    const isNew = before?.state !== 'ready' || now.authorization?.expires_at !== before.expires_at;
    if (now.authorization?.state === 'ready' && isNew) return now;
    await context.pause(POLL_MS, context.stop);
  }
  throw new CliError(EXIT.failed, `${name} was not authorised${context.stop.aborted ? '' : ' in time'}`, [
    `Try again: svc mcp authorize ${name}`,
  ]);
}

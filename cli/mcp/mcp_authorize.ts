import { z } from 'zod';
import {
  type McpAuthorizationInput,
  mcpAuthorizeReply,
  type McpAuthorizeReply,
} from '../../shared/wire/mcp_authorization.ts';
import { mcpServerRecord, type McpServerRecord } from '../../shared/wire/mcp_servers.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { type ClientSecretOptions, clientSecret } from '../connectors/connector_authorize.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { type HttpClient, type RawReply, refusedBy } from '../terminal/http_client.ts';
import { findMcpServer, type OwnerOption } from './mcp_lookup.ts';
import { serversAfterChange } from './mcp_machine.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { parseJson } from '../../shared/model/json.ts';
import { askYes } from '../terminal/ask.ts';

export interface McpAuthorizeOptions extends OwnerOption, ClientSecretOptions {
  readonly clientId?: string;
  readonly clientAuthentication?: 'post' | 'basic';
  readonly scope?: readonly string[];
  readonly authorizationHost?: readonly string[];
  readonly forget?: boolean;
  readonly wait: boolean;
}

const POLL_MS = 2_000;

/** `svc mcp authorize SERVER`: shows where to sign in, and waits for that. */
export async function authorizeMcpServer(call: Call<McpAuthorizeOptions>): Promise<undefined> {
  const { context, options } = call;
  const client = controlClient(context, options);
  const server = await findMcpServer(client, call.args[0] ?? '', options.owner);
  await (options.forget === true ? forget(call, client, server) : signIn(call, client, server));
}

async function signIn(call: Call<McpAuthorizeOptions>, client: HttpClient, server: McpServerRecord): Promise<void> {
  const { options, print } = call;
  if (server.mode !== 'remote') {
    throw new CliError(EXIT.usage, `${server.name} is a local server: nothing is signed in to`, [
      `Its credentials are set with: svc mcp credential set ${server.name} NAME`,
    ]);
  }
  const body = await inputOf(call);
  const reply = await begin(call, client, server, body);
  if (!options.wait) {
    print.data(reply, () => guide(server, reply));
    return;
  }
  print.note(guide(server, reply).trimEnd());
  const ready = await authorised(call, client, server, reply);
  await serversAfterChange(call);
  print.data(ready.authorization, () => `authorised ${server.name}\n`);
}

/** Begins it; where hosts of others are named, once the person agreed to them. */
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
  const hosts = unconfirmedHosts(raw);
  if (hosts === null) throw refusedBy('the control plane', raw);
  if (!(await isAgreed(call, server, hosts))) {
    const { message, exitCode } = refusedBy('the control plane', raw);
    const flags = hosts.map((host) => `--authorization-host ${host}`).join(' ');
    throw new CliError(exitCode, message, [`To go on all the same: svc mcp authorize ${server.name} ${flags}`]);
  }
  const agreed = { ...input, authorization_hosts: [...hosts] };
  return client.call('POST', `/v1/mcp-servers/${server.id}/authorize`, mcpAuthorizeReply, { body: agreed });
}

function readReply({ origin }: HttpClient, { text }: RawReply): McpAuthorizeReply {
  const reply = mcpAuthorizeReply.safeParse(parseJson(text));
  if (reply.success) return reply.data;
  throw new CliError(EXIT.failed, `${origin} answered in a form this svc does not know`);
}

const unconfirmed = z.object({
  error: z.object({
    code: z.literal('authorization_server_unconfirmed'),
    details: z.object({ hosts: z.array(z.string()).min(1) }),
  }),
});

/** The hosts that the control plane asks about; null for any other refusal. */
function unconfirmedHosts({ text }: RawReply): readonly string[] | null {
  return unconfirmed.safeParse(parseJson(text)).data?.error.details.hosts ?? null;
}

/** Asks in a terminal, by the server's own host and by those that it names. */
async function isAgreed(
  { context, print }: Call,
  { name, url }: McpServerRecord,
  hosts: readonly string[],
): Promise<boolean> {
  if (!context.interactive || print.json) return false;
  const own = url !== null && URL.canParse(url) ? new URL(url).host : 'another host';
  print.warn(
    toPrintable(
      `${name} is at ${own}, and has you sign in with ${hosts.join(', ')}. What you agree to there, this server may get.`,
    ),
  );
  // Ctrl-C and the end of the input are no consent.
  return askYes(context, 'Is that where people sign in for it?');
}

async function forget(call: Call, client: HttpClient, { id, name }: McpServerRecord): Promise<void> {
  await client.callEmpty('DELETE', `/v1/mcp-servers/${id}/authorize`);
  await serversAfterChange(call);
  if (call.print.person || call.print.json) {
    call.print.data({ forgotten: id }, () => `forgot the authorisation of ${name}\n`);
  }
}

async function inputOf(call: Call<McpAuthorizeOptions>): Promise<McpAuthorizationInput> {
  const { clientId, clientAuthentication, scope, publicClient, clientSecretStdin } = call.options;
  const scopes = scope === undefined ? {} : { scopes: [...scope] };
  if (clientId === undefined) {
    if (publicClient === undefined && clientSecretStdin === undefined && clientAuthentication === undefined)
      return scopes;
    throw new CliError(EXIT.usage, '--client-id is missing: the other options say what kind of client it is');
  }
  const secret = await clientSecret(call);
  return {
    client_id: clientId,
    ...(secret !== null && { client_secret: secret }),
    ...(clientAuthentication !== undefined && { client_authentication: clientAuthentication }),
    ...scopes,
  };
}

function guide({ name }: McpServerRecord, reply: McpAuthorizeReply): string {
  const [link, at] = [toPrintable(reply.authorization_url), toPrintable(reply.authorization_server)];
  return `To authorise ${name} at ${at}, open this link in your browser:\n\n  ${link}\n\n`;
}

/** Waits until the server is authorised, or its access token is another one than before. */
async function authorised(
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
    `Begin again: svc mcp authorize ${name}`,
  ]);
}

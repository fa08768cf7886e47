import {
  authorizeReply,
  type AuthorizeReply,
  type OAuth2CredentialInput,
} from '../../shared/wire/connectors/connector_credentials.ts';
import {
  connectorCredentialRecord,
  connectorRecord,
  type ConnectorCredentialRecord,
  type ConnectorSummary,
} from '../../shared/wire/connectors/connectors.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import type { OwnerOption } from '../command_options.ts';
import { findConnector } from './connector_lookup.ts';
import { adviseOfActivation } from './connector_secret.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { promptHidden, readSecret } from '../terminal/read_secret.ts';

/** The options that say where the secret of an OAuth client comes from. */
export interface ClientSecretOptions {
  readonly clientSecretStdin?: boolean;
  readonly publicClient?: boolean;
}

export interface AuthorizeOptions extends OwnerOption, ClientSecretOptions {
  readonly clientId?: string;
  readonly clientAuthentication?: 'post' | 'basic';
  readonly authorizationUrl?: string;
  readonly tokenUrl?: string;
  readonly deviceAuthorizationUrl?: string;
  readonly revocationUrl?: string;
  readonly scope?: readonly string[];
  readonly device?: boolean;
  readonly wait: boolean;
}

const POLL_MS = 2_000;

/** `svc connector authorize FQN`: stores the OAuth client if one is given, prints where to authorise it, and waits. */
export async function authorize(call: Call<AuthorizeOptions>): Promise<undefined> {
  const { context, options, print } = call;
  const client = controlClient(context, options);
  const connector = await findConnector(client, call.args[0] ?? '', options.owner);
  if (connector.credential.kind !== 'oauth2') {
    throw new CliError(EXIT.usage, `${connector.fqn} takes an API key, which needs no authorisation`, [
      `svc connector credential set ${connector.fqn}`,
    ]);
  }
  const before = await storeClient(call, client, connector);
  const body = { grant: options.device === true ? 'device' : 'browser' };
  const path = `/v1/connectors/${connector.id}/credential/authorize`;
  const reply = await client.call('POST', path, authorizeReply, { body });
  if (!options.wait) {
    print.data(reply, () => formatGuide(connector, reply));
    return;
  }
  print.note(formatGuide(connector, reply).trimEnd());
  const credential = await waitForAuthorisation(call, client, connector, { before, reply });
  print.data(credential, () => `authorised ${connector.fqn}${lifeText(credential)}\n`);
  await adviseOfActivation(call, client, connector);
}

/** The options that describe the client. They are stored together with its id. */
const OF_A_CLIENT = [
  'clientSecretStdin',
  'publicClient',
  'clientAuthentication',
  'authorizationUrl',
  'tokenUrl',
  'deviceAuthorizationUrl',
  'revocationUrl',
  'scope',
] as const satisfies readonly (keyof AuthorizeOptions)[];

/** The credential before it is authorised; with `--client-id`, that client is stored first. */
async function storeClient(
  call: Call<AuthorizeOptions>,
  client: HttpClient,
  { id, fqn, credential }: ConnectorSummary,
): Promise<ConnectorCredentialRecord> {
  const { options } = call;
  if (options.clientId !== undefined) {
    const body = await clientInput(call, options.clientId);
    return client.call('PUT', `/v1/connectors/${id}/credential`, connectorCredentialRecord, { body });
  }
  const isWhole = OF_A_CLIENT.every((option) => options[option] === undefined);
  if (credential.client_id !== null && isWhole) return credential;
  const why = credential.client_id === null ? 'the connector has no OAuth client yet' : 'the other options need it';
  throw new CliError(EXIT.usage, `--client-id is missing: ${why}`, [
    `Register a client with the service, with the redirect URL ${client.origin}/auth/connectors/callback, then run:`,
    `svc connector authorize ${fqn} --client-id ID`,
  ]);
}

async function clientInput(call: Call<AuthorizeOptions>, clientId: string): Promise<OAuth2CredentialInput> {
  const { options } = call;
  const secret = await clientSecret(call);
  return {
    kind: 'oauth2',
    client_id: clientId,
    ...(secret !== null && { client_secret: secret }),
    ...(options.clientAuthentication !== undefined && { client_authentication: options.clientAuthentication }),
    ...(options.authorizationUrl !== undefined && { authorization_url: options.authorizationUrl }),
    ...(options.tokenUrl !== undefined && { token_url: options.tokenUrl }),
    ...(options.deviceAuthorizationUrl !== undefined && { device_authorization_url: options.deviceAuthorizationUrl }),
    ...(options.revocationUrl !== undefined && { revocation_url: options.revocationUrl }),
    ...(options.scope !== undefined && { scopes: [...options.scope] }),
  };
}

/** The client's secret; null for a public client. */
export async function clientSecret({ context, options }: Call<ClientSecretOptions>): Promise<string | null> {
  const isPublic = options.publicClient === true;
  if (isPublic && options.clientSecretStdin === true) {
    throw new CliError(EXIT.usage, 'both --public-client and --client-secret-stdin were given: choose one');
  }
  if (isPublic) return null;
  if (options.clientSecretStdin === true) return readSecret(context, { stdin: true });
  if (!context.interactive) {
    throw new CliError(EXIT.usage, 'stdin is not a terminal, so the client secret cannot be asked for', [
      'Pipe it with --client-secret-stdin. If the client has no secret, use --public-client.',
    ]);
  }
  const question = 'Client secret (not shown; leave empty if it has none): ';
  const typed = await promptHidden(context.stdin, context.stderr, question);
  return typed === '' ? null : typed;
}

function formatGuide({ fqn }: ConnectorSummary, reply: AuthorizeReply): string {
  if (reply.grant === 'browser') {
    const link = toPrintable(reply.authorization_url);
    const redirect = toPrintable(reply.redirect_uri);
    return `To authorise ${fqn}, open this link in your browser:\n\n  ${link}\n\nThe client must be registered with the redirect URL ${redirect}\n`;
  }
  const where = toPrintable(reply.verification_uri_complete ?? reply.verification_uri);
  return `To authorise ${fqn}, open ${where} and enter the code:\n\n  ${toPrintable(reply.user_code)}\n\n`;
}

/** Waits until the credential exists or is newer than before. Reading the connector also redeems a device code. */
async function waitForAuthorisation(
  { context }: Call,
  client: HttpClient,
  { id, fqn }: ConnectorSummary,
  waiting: { readonly before: ConnectorCredentialRecord; readonly reply: AuthorizeReply },
): Promise<ConnectorCredentialRecord> {
  const { before, reply } = waiting;
  const pollMs = reply.grant === 'device' ? Math.max(POLL_MS, reply.interval_seconds * 1_000) : POLL_MS;
  const looks = Math.ceil((Date.parse(reply.expires_at) - context.now()) / pollMs) + 1;
  for (let look = 0; look < looks && !context.stop.aborted; look += 1) {
    const { credential } = await client.call('GET', `/v1/connectors/${id}`, connectorRecord);
    const isNew = before.state !== 'ready' || credential.updated_at !== before.updated_at;
    if (credential.state === 'ready' && isNew) return credential;
    await context.pause(pollMs, context.stop);
  }
  throw new CliError(EXIT.failed, `${fqn} was not authorised${context.stop.aborted ? '' : ' in time'}`, [
    `Try again: svc connector authorize ${fqn}`,
  ]);
}

function lifeText({ expires_at: end, renewable }: ConnectorCredentialRecord): string {
  if (renewable) return ': it is renewed automatically';
  return end === null ? '' : ` until ${end}: the provider issued no refresh token`;
}

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { DOMAIN_JOINING, enterpriseSettings, type EnterpriseSettings } from '../../shared/wire/enterprise.ts';
import { controlClient } from '../clients.ts';
import { type Call, collectValue, type CommandLine, handle } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { askOrStop, isYes } from '../terminal/ask.ts';
import { readSecret } from '../terminal/read_secret.ts';
import { unreadableFile } from '../terminal/unreadable_file.ts';

interface SetOptions {
  readonly name?: string;
  readonly billingEmail?: string;
  readonly allowDomain?: readonly string[];
  readonly allowProvider?: readonly string[];
  readonly anyDomain?: boolean;
  readonly anyProvider?: boolean;
  readonly ssoRequired?: string;
  readonly joining?: string;
  readonly providerClient?: readonly string[];
  readonly withoutProviderClients?: boolean;
}

interface DomainOptions {
  readonly domain?: readonly string[];
}

interface OidcOptions extends DomainOptions {
  readonly stdin?: boolean;
  readonly file?: string;
}

interface RemoveOptions {
  readonly yes?: boolean;
}

interface SamlOptions extends DomainOptions {
  readonly metadataUrl?: string;
  readonly metadataFile?: string;
}

const DOMAINS = 'a domain of the enterprise, which it has to prove (repeatable; default: those that are set)';

/** `svc enterprise show`, `set`, `oidc ...` and `saml ...`. */
export function addSettingsCommands(line: CommandLine, enterprise: Command): void {
  handle(line, enterprise.command('show').description('show the settings: who may sign in, and how'), showSettings);
  const set = enterprise
    .command('set')
    .description('change settings; those that are not named stay (admins)')
    .option('--name <name>', 'name of the enterprise')
    .option('--billing-email <address>', 'address for bills; empty: none')
    .option('--allow-domain <domain>', 'only verified addresses in these domains sign in (repeatable)', collectValue)
    .option('--any-domain', 'addresses in any domain sign in')
    .option('--allow-provider <name>', 'only these providers besides its own (repeatable)', collectValue)
    .option('--any-provider', 'every provider that is configured')
    .option('--sso-required <choice>', "on: only the enterprise's own provider; off")
    .option('--joining <choice>', `who joins by a proven domain: ${DOMAIN_JOINING.join(', ')}`)
    .option(
      '--provider-client <client-id>',
      'only these MCP clients does its own OpenID provider connect for members (repeatable)',
      collectValue,
    )
    .option('--without-provider-clients', 'its own provider connects no MCP client');
  handle<SetOptions>(line, set, setSettings);
  addOidcCommands(line, enterprise);
  addSamlCommands(line, enterprise);
}

function addOidcCommands(line: CommandLine, enterprise: Command): void {
  const oidc = enterprise.command('oidc').description("the enterprise's own OpenID provider");
  const set = oidc
    .command('set')
    .description('set the provider (owners); its secret stays if issuer and client do')
    .argument('<issuer>', 'its issuer, such as https://id.acme.com')
    .argument('<client-id>', 'the client id there')
    .option('--domain <domain>', DOMAINS, collectValue)
    .option('--stdin', "read the client's secret from stdin")
    .option('--file <file>', "read the client's secret from a file");
  handle<OidcOptions>(line, set, setOidc);
  handle<RemoveOptions>(line, removal(oidc), (call) => removeProvider(call, 'oidc'));
}

function addSamlCommands(line: CommandLine, enterprise: Command): void {
  const saml = enterprise.command('saml').description("the enterprise's own SAML 2.0 provider");
  const set = saml
    .command('set')
    .description('set the provider by its metadata, or only its domains (owners)')
    .option('--metadata-url <url>', 'where its metadata are; they are read once, now')
    .option('--metadata-file <file>', 'file with its metadata')
    .option('--domain <domain>', DOMAINS, collectValue);
  handle<SamlOptions>(line, set, setSaml);
  handle<RemoveOptions>(line, removal(saml), (call) => removeProvider(call, 'saml'));
}

function removal(provider: Command): Command {
  return provider.command('remove').description('remove the provider (owners)').option('--yes', 'do not ask');
}

async function readSettings({ context, options }: Call): Promise<EnterpriseSettings> {
  return controlClient(context, options).call('GET', '/v1/enterprise', enterpriseSettings);
}

async function showSettings(call: Call): Promise<undefined> {
  show(call, await readSettings(call));
}

function show({ print }: Pick<Call, 'print'>, settings: EnterpriseSettings): void {
  print.line(settings, textOf(settings));
}

function textOf(settings: EnterpriseSettings): string {
  const { oidc, saml, allowed_providers: providers, allowed_domains: domains } = settings;
  const rows: readonly (readonly [string, string])[] = [
    ['id', settings.id],
    ['name', settings.name],
    ['billing email', settings.billing_email ?? '-'],
    ['allowed domains', domains.length === 0 ? 'any' : domains.join(', ')],
    ['allowed providers', providers === null ? 'any' : providers.join(', ') || 'none besides its own'],
    ['own provider required', settings.sso_required ? 'on' : 'off'],
    ['joining by domain', settings.domain_joining],
    ['provider’s MCP clients', settings.provider_mcp_clients.join(', ') || 'none'],
    ...providerRows(oidc, saml),
  ];
  return rows.map(([name, value]) => `${`${name}:`.padEnd(24)}${value}`).join('\n');
}

function providerRows(
  oidc: EnterpriseSettings['oidc'],
  saml: EnterpriseSettings['saml'],
): readonly (readonly [string, string])[] {
  const domains = (oidc ?? saml)?.domains.join(', ') ?? '';
  const proven = ['domains', domains === '' ? 'none' : domains] as const;
  if (oidc !== null) {
    return [
      ['OpenID provider', oidc.issuer],
      ['client id', oidc.client_id],
      ['redirect path', oidc.redirect_path],
      proven,
    ];
  }
  if (saml === null) return [['own provider', 'none']];
  return [
    ['SAML provider', saml.entity_id],
    ['sign-in page', saml.sso_url],
    ...saml.certificates.map((certificate) => ['certificate', certificate] as const),
    ['our metadata', saml.metadata_path],
    ['our ACS', saml.acs_path],
    proven,
  ];
}

async function setSettings(call: Call<SetOptions>): Promise<undefined> {
  const { options } = call;
  const before = await readSettings(call);
  await replace(call, before, {
    name: options.name ?? before.name,
    billing_email: options.billingEmail === undefined ? before.billing_email : options.billingEmail || null,
    allowed_domains: options.anyDomain === true ? [] : (options.allowDomain ?? before.allowed_domains),
    allowed_providers: options.anyProvider === true ? null : (options.allowProvider ?? before.allowed_providers),
    sso_required: options.ssoRequired === undefined ? before.sso_required : isOn(options.ssoRequired),
    domain_joining: options.joining ?? before.domain_joining,
    ...clientsOf(options),
  });
}

/** Left out, they stay: a control plane of an earlier version does not know the field. */
function clientsOf({ providerClient, withoutProviderClients }: SetOptions): object {
  if (withoutProviderClients === true) return { provider_mcp_clients: [] };
  return providerClient === undefined ? {} : { provider_mcp_clients: providerClient };
}

function isOn(choice: string): boolean {
  if (choice === 'on' || choice === 'off') return choice === 'on';
  throw new CliError(EXIT.usage, `--sso-required is ${JSON.stringify(choice)}: use on or off`);
}

async function setOidc(call: Call<OidcOptions>): Promise<undefined> {
  const { options, args, context } = call;
  const [issuer = '', clientId = ''] = args;
  const hasSecret = options.stdin === true || options.file !== undefined;
  const secret = hasSecret ? { client_secret: await readSecret(context, options) } : {};
  const before = await readSettings(call);
  const domains = options.domain ?? (before.oidc ?? before.saml)?.domains ?? [];
  await replace(call, before, { oidc: { issuer, client_id: clientId, ...secret, domains }, saml: null });
}

async function setSaml(call: Call<SamlOptions>): Promise<undefined> {
  const { options, context } = call;
  const { metadataUrl: url, metadataFile: file } = options;
  if (url !== undefined && file !== undefined) {
    throw new CliError(EXIT.usage, 'both --metadata-url and --metadata-file were given: choose one');
  }
  const metadata = file === undefined ? {} : { metadata: readMetadata(resolve(context.workingDirectory, file)) };
  const before = await readSettings(call);
  const domains = options.domain ?? (before.oidc ?? before.saml)?.domains ?? [];
  const saml = { ...(url !== undefined && { metadata_url: url }), ...metadata, domains };
  await replace(call, before, { saml, oidc: null });
}

function readMetadata(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    throw unreadableFile('the file of --metadata-file', error);
  }
}

const PROVIDER_NAMES = { oidc: 'OpenID provider', saml: 'SAML provider' } as const;

async function removeProvider(call: Call<RemoveOptions>, kind: 'oidc' | 'saml'): Promise<undefined> {
  const { context, options, print } = call;
  const name = providerName(await readSettings(call), kind);
  if (name === undefined) {
    throw new CliError(EXIT.failed, `the enterprise has no ${PROVIDER_NAMES[kind]}: nothing was changed`, [
      '`svc enterprise show` shows its provider.',
    ]);
  }
  if (options.yes !== true) {
    print.note(`Nobody signs in by ${toPrintable(name)} any more, and the enterprise gives up its domains.`);
    if (!context.interactive) throw new CliError(EXIT.usage, '--yes is missing: there is no terminal to ask at');
    if (!isYes(await askOrStop(context, `Remove the ${PROVIDER_NAMES[kind]}? [y/N] `))) {
      throw new CliError(EXIT.failed, 'nothing was changed');
    }
  }
  // The rest is as it is after the question, which may have waited long.
  const now = await readSettings(call);
  if (providerName(now, kind) !== name) {
    throw new CliError(EXIT.failed, 'somebody has changed the provider meanwhile: nothing was changed');
  }
  await replace(call, now, { [kind]: null });
}

function providerName({ oidc, saml }: EnterpriseSettings, kind: 'oidc' | 'saml'): string | undefined {
  return kind === 'oidc' ? oidc?.issuer : saml?.entity_id;
}

/** Writes the settings with some changed. A provider that is not named stays: its secret and metadata are not sent. */
async function replace(call: Call, before: EnterpriseSettings, changed: object): Promise<void> {
  const { name, billing_email, allowed_domains, allowed_providers, sso_required, domain_joining, oidc, saml } = before;
  const same = { name, billing_email, allowed_domains, allowed_providers, sso_required, domain_joining };
  const provider = {
    oidc: oidc === null ? null : { issuer: oidc.issuer, client_id: oidc.client_id, domains: oidc.domains },
    saml: saml === null ? null : { domains: saml.domains },
  };
  const sent = { body: { ...same, ...provider, ...changed }, ifMatch: before.revision };
  show(call, await controlClient(call.context, call.options).call('PUT', '/v1/enterprise', enterpriseSettings, sent));
}

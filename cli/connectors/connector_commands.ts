import { type RemovalOptions, withRemovalOptions } from '../bindings/confirm_removal.ts';
import { Option, type Command } from 'commander';
import { CREDENTIAL_KINDS } from '../../shared/model/connector.ts';
import { handle, collectValue, type CommandLine } from '../command_line.ts';
import {
  type OwnerOption,
  ownerFilter,
  ownerOption,
  withClientAuthentication,
  withSecretSource,
} from '../command_options.ts';
import type { AuthorizeOptions } from './connector_authorize.ts';
import type { CredentialOptions } from './connector_credential.ts';
import type { InstallOptions } from './connector_install.ts';
import type { FromOpenApiOptions } from './connector_from_openapi.ts';
import type { TestOptions } from './test_operation.ts';

// The actions are loaded on use, so that other commands start faster.

/** `svc connector ...`. */
export function addConnectorCommands(line: CommandLine): void {
  const connector = line.program.command('connector').description("allow agents single operations of a service's API");
  addInstall(line, connector);
  addList(line, connector);
  addCatalog(line, connector);
  addTest(line, connector);
  addCredential(line, connector);
  addAuthorize(line, connector);
  addFromOpenApi(line, connector);
}

function addInstall(line: CommandLine, connector: Command): void {
  const install = connector
    .command('install')
    .description('install a connector or a new version of it')
    .argument('<file-or-name>', 'a spec file (YAML or JSON; - is stdin), or a name that `svc connector catalog` lists')
    .addOption(ownerOption('owner of the connector').default('personal'))
    .option('--secret <path>', 'the stored secret that serves it (default: at a terminal, asks)')
    .option('--dry-run', 'only check the spec, on this machine');
  handle<InstallOptions>(line, install, async (call) =>
    (await import('./connector_install.ts')).installConnector(call),
  );
  const remove = withRemovalOptions(
    connector
      .command('remove')
      .alias('rm')
      .description('remove a connector and its credential; names what stops working')
      .argument('<fqn>', 'publisher/name or id')
      .addOption(ownerOption()),
  );
  handle<OwnerOption & RemovalOptions>(line, remove, async (call) =>
    (await import('./connector_install.ts')).removeConnector(call),
  );
}

function addList(line: CommandLine, connector: Command): void {
  const list = connector
    .command('list')
    .alias('ls')
    .description('list the installed connectors')
    .addOption(ownerFilter());
  handle<OwnerOption>(line, list, async (call) => (await import('./connector_views.ts')).listConnectors(call));
  const show = connector
    .command('show')
    .description('show a connector as YAML that can be reinstalled')
    .argument('<fqn>', 'publisher/name or id')
    .addOption(ownerOption());
  handle<OwnerOption>(line, show, async (call) => (await import('./connector_views.ts')).showConnector(call));
}

function addCatalog(line: CommandLine, connector: Command): void {
  const catalog = connector
    .command('catalog')
    .description('list the catalog of connectors for well-known services; with a name, print that spec')
    .argument('[name]');
  handle(line, catalog, async (call) => (await import('./connector_catalog.ts')).showCatalog(call));
}

function addTest(line: CommandLine, connector: Command): void {
  const test = connector
    .command('test')
    .description("run an operation and print the upstream's reply (sends a real request)")
    .argument('<fqn>', 'publisher/name or id')
    .argument('<operation>', 'name of the operation, as `svc connector show` lists it')
    .option(
      '--arg <name=value>',
      'one arg, converted to the type of the input; give a list item by item (repeatable)',
      collectValue,
    )
    .option('--args <json>', 'all args as a JSON object; @FILE reads it from a file, @- from stdin')
    .option('--host <host>', "one of the connector's hosts (default: the first)")
    .addOption(ownerOption());
  handle<TestOptions>(line, test, async (call) => (await import('./test_operation.ts')).testOperation(call));
}

function addCredential(line: CommandLine, connector: Command): void {
  const credential = connector
    .command('credential')
    .description("set or delete a connector's credential (its value is never shown)");
  const set = withSecretSource(
    credential.command('set').description('store or replace the API key').argument('<fqn>', 'publisher/name or id'),
  )
    .option('--secret <path>', 'let this stored secret serve the connector, instead of a key of its own')
    .addOption(ownerOption());
  handle<CredentialOptions>(line, set, async (call) => (await import('./connector_credential.ts')).setCredential(call));
  const remove = credential
    .command('rm')
    .description('delete the credential (a stored secret that serves others too stays)')
    .argument('<fqn>', 'publisher/name or id')
    .addOption(ownerOption());
  handle<OwnerOption>(line, remove, async (call) => (await import('./connector_credential.ts')).removeCredential(call));
}

function addAuthorize(line: CommandLine, connector: Command): void {
  const authorize = withClientAuthentication(
    connector
      .command('authorize')
      .description('authorise an oauth2 connector in the browser, also to replace an earlier authorisation')
      .argument('<fqn>', 'publisher/name or id')
      .option('--client-id <id>', 'the OAuth client (needed the first time)'),
  )
    .option('--authorization-url <url>', "replaces the spec's URL")
    .option('--token-url <url>', "replaces the spec's URL")
    .option('--device-authorization-url <url>', "replaces the spec's URL")
    .option('--revocation-url <url>', "replaces the spec's URL, where tokens are revoked")
    .option('--scope <scope>', "replaces the spec's scopes (repeatable)", collectValue)
    .option('--device', 'use a device code, entered in a browser on any device, if the provider supports it')
    .option('--no-wait', 'print the link and do not wait')
    .addOption(ownerOption());
  handle<AuthorizeOptions>(line, authorize, async (call) => (await import('./connector_authorize.ts')).authorize(call));
}

function addFromOpenApi(line: CommandLine, connector: Command): void {
  const from = connector
    .command('from-openapi')
    .description('generate a spec from an OpenAPI 3 document')
    .argument('<file>', 'the document (YAML or JSON; - is stdin)')
    .option('--list', 'list the operations of the document')
    .option('--fqn <publisher/name>', 'the name of the connector')
    .option('--select <operation>', 'include this operation: its name or "GET /path" (repeatable)', collectValue)
    .option('--all', 'include every operation')
    .option('--host <host>', "upstream host, replaces the document's (repeatable)", collectValue)
    .addOption(
      new Option('--credential <kind>', 'kind of credential that the service takes')
        .choices(CREDENTIAL_KINDS)
        .default('api_key'),
    )
    .option('--approve <operation>', 'require an approval for this operation (repeatable)', collectValue)
    .option('-o, --output <file>', 'output file (default: stdout)');
  handle<FromOpenApiOptions>(line, from, async (call) =>
    (await import('./connector_from_openapi.ts')).fromOpenApi(call),
  );
}

import { Option, type Command } from 'commander';
import { CREDENTIAL_KINDS } from '../../shared/model/connector.ts';
import { OWNERS } from '../../shared/model/host_binding.ts';
import { handle, several, type CommandLine } from '../command_line.ts';
import type { AuthorizeOptions } from './connector_authorize.ts';
import type { CredentialOptions } from './connector_credential.ts';
import type { InstallOptions } from './connector_install.ts';
import type { OwnerOption } from './connector_lookup.ts';
import type { FromOpenApiOptions } from './connector_openapi.ts';
import type { TestOptions } from './connector_run.ts';

// What the commands do is loaded when they are used: every other command starts faster.

/** `svc connector ...`. */
export function addConnectorCommands(line: CommandLine): void {
  const connector = line.program
    .command('connector')
    .description('operations of a service that agents may use, each with its own rule');
  addInstall(line, connector);
  addList(line, connector);
  addCatalog(line, connector);
  addTest(line, connector);
  addCredential(line, connector);
  addAuthorize(line, connector);
  addFromOpenApi(line, connector);
}

function ownerOf(description: string): Option {
  return new Option('--owner <owner>', description).choices(OWNERS);
}

function addInstall(line: CommandLine, connector: Command): void {
  const install = connector
    .command('install')
    .description('install a connector, or a new version of it')
    .argument('<file-or-name>', 'a spec (YAML or JSON; - is stdin), or the name of a ready one: svc connector catalog')
    .addOption(ownerOf('whose namespace (default: personal)').default('personal'))
    .option('--dry-run', 'only check the spec, here');
  handle<InstallOptions>(line, install, async (call) =>
    (await import('./connector_install.ts')).installConnector(call),
  );
  const remove = connector
    .command('remove')
    .alias('rm')
    .description('remove a connector and its credential')
    .argument('<fqn>', 'publisher/name, or the id')
    .addOption(ownerOf('whose, when both have one'));
  handle<OwnerOption>(line, remove, async (call) => (await import('./connector_install.ts')).removeConnector(call));
}

function addList(line: CommandLine, connector: Command): void {
  const list = connector
    .command('list')
    .alias('ls')
    .description('list the installed connectors')
    .addOption(ownerOf('only this namespace'));
  handle<OwnerOption>(line, list, async (call) => (await import('./connector_views.ts')).listConnectors(call));
  const show = connector
    .command('show')
    .description('show a connector as YAML that can be installed again')
    .argument('<fqn>', 'publisher/name, or the id')
    .addOption(ownerOf('whose, when both have one'));
  handle<OwnerOption>(line, show, async (call) => (await import('./connector_views.ts')).showConnector(call));
}

function addCatalog(line: CommandLine, connector: Command): void {
  const catalog = connector
    .command('catalog')
    .description('list ready connectors for well-known services; with a name, print one')
    .argument('[name]');
  handle(line, catalog, async (call) => (await import('./connector_catalog.ts')).showCatalog(call));
}

function addTest(line: CommandLine, connector: Command): void {
  const test = connector
    .command('test')
    .description('run an operation and print the upstream’s reply (the request is really sent)')
    .argument('<fqn>', 'publisher/name, or the id')
    .argument('<operation>', 'its name, as `svc connector show` lists it')
    .option('--arg <name=value>', 'one arg, of the type that the input has; a list is given item by item', several)
    .option('--args <json>', 'all args as a JSON object; @FILE reads it from a file, @- from stdin')
    .option('--host <host>', 'which of its hosts (default: the first)')
    .addOption(ownerOf('whose, when both have one'));
  handle<TestOptions>(line, test, async (call) => (await import('./connector_run.ts')).testOperation(call));
}

function addCredential(line: CommandLine, connector: Command): void {
  const credential = connector.command('credential').description("a connector's credential (its value is never shown)");
  const set = credential
    .command('set')
    .description('store the API key, or replace it')
    .argument('<fqn>', 'publisher/name, or the id')
    .option('--stdin', 'read the value from stdin')
    .option('--file <file>', 'read the value from a file')
    .option('--keep-newline', 'keep a line break at the end (else one is dropped)')
    .addOption(new Option('--value [refused]').hideHelp())
    .addOption(ownerOf('whose, when both have one'))
    .allowExcessArguments();
  handle<CredentialOptions>(line, set, async (call) => (await import('./connector_credential.ts')).setCredential(call));
  const remove = credential
    .command('rm')
    .description('delete the credential')
    .argument('<fqn>', 'publisher/name, or the id')
    .addOption(ownerOf('whose, when both have one'));
  handle<OwnerOption>(line, remove, async (call) => (await import('./connector_credential.ts')).removeCredential(call));
}

function addAuthorize(line: CommandLine, connector: Command): void {
  const authorize = connector
    .command('authorize')
    .description('authorise an oauth2 connector in the browser, or renew its authorisation')
    .argument('<fqn>', 'publisher/name, or the id')
    .option('--client-id <id>', 'the OAuth client (needed the first time)')
    .option('--client-secret-stdin', 'read its secret from stdin (else it is asked for; a public client has none)')
    .option('--public-client', 'the client has no secret')
    .addOption(
      new Option('--client-authentication <way>', 'how the secret is sent (default: post, in the body)').choices([
        'post',
        'basic',
      ]),
    )
    .option('--authorization-url <url>', "in place of the spec's")
    .option('--token-url <url>', "in place of the spec's")
    .option('--device-authorization-url <url>', "in place of the spec's")
    .option('--scope <scope>', "in place of the spec's (repeatable)", several)
    .option('--device', 'by a code that is typed on another device, where the provider has that')
    .option('--no-wait', 'print the link and return')
    .addOption(ownerOf('whose, when both have one'));
  handle<AuthorizeOptions>(line, authorize, async (call) => (await import('./connector_authorize.ts')).authorize(call));
}

function addFromOpenApi(line: CommandLine, connector: Command): void {
  const from = connector
    .command('from-openapi')
    .description('make a spec from an OpenAPI 3 document')
    .argument('<file>', 'the document (YAML or JSON; - is stdin)')
    .option('--list', 'list the operations of the document')
    .option('--fqn <publisher/name>', 'the name of the connector')
    .option('--select <operation>', 'take this one: its name, or "GET /path" (repeatable)', several)
    .option('--all', 'take every operation')
    .option('--host <host>', "an upstream host, in place of the document's (repeatable)", several)
    .addOption(new Option('--credential <kind>', 'what it takes').choices(CREDENTIAL_KINDS).default('api_key'))
    .option('--approve <operation>', 'this one needs an approval (repeatable)', several)
    .option('-o, --output <file>', 'write it there (default: stdout)');
  handle<FromOpenApiOptions>(line, from, async (call) => (await import('./connector_openapi.ts')).fromOpenApi(call));
}

import type { Command } from 'commander';
import { isStandIn, serviceOfShape } from '../../shared/model/credential_shapes.ts';
import { didYouMean } from '../../shared/model/near_match.ts';
import type { SealedService } from '../../shared/wire/sealed_service.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { ownerOption, withSecretSource } from '../command_options.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { knownPlaceholders } from '../launch/screen_environment.ts';
import { askYes } from '../terminal/ask.ts';
import { readSecret } from '../terminal/read_secret.ts';
import { reportSealed, sealService, type SealOptions } from './seal_credential.ts';
import { findService, loadServices } from './services.ts';
import { dropUndefined } from '../command_options.ts';

/** `svc seal`. */
export function addSealCommand(line: CommandLine): void {
  const seal = line.program
    .command('seal')
    .description(
      'store the credential of a well-known service, with every binding that the service needs; without a name, look for credentials on this machine',
    )
    .argument('[service]', 'github, gitlab, npm, aws, openai, anthropic ...');
  handle<SealOptions>(line, sealOptions(seal), sealNamed);
}

function sealOptions(command: Command): Command {
  return withSecretSource(command)
    .option('--from <variable>', 'take the value from this environment variable')
    .option('--as <path>', 'path in the vault (default: the one of the service, such as user/github)')
    .option('--host <host>', 'the host of your registry or site')
    .option('--username <name>', 'the user name that belongs to the credential')
    .option('--access-key-id <id>', 'aws: the access key id')
    .option('--region <region>', 'aws: the region')
    .option('--service <service>', 'aws: one more service besides S3')
    .addOption(ownerOption('owner of the secret and the bindings').default('personal'))
    .option('-y, --yes', 'replace a stored value without asking');
}

async function sealNamed(call: Call<SealOptions>): Promise<undefined> {
  const [name] = call.args;
  if (call.args.length > 1 || call.options.value !== undefined) throw refuseArgument();
  const services = loadServices(call.context.root);
  if (name === undefined) {
    // Loaded on use, so that sealing one service starts faster.
    const { sealFound } = await import('./seal_found.ts');
    await sealFound(call, services);
    return;
  }
  const service = findService(services, name);
  const { host, username, accessKeyId, region, service: awsService } = call.options;
  const values = dropUndefined({ host, username, access_key_id: accessKeyId, region, service: awsService });
  const sealed = await sealService(call, service, { values, readValue: () => readValue(call, service) });
  reportSealed(call, service, sealed);
}

function refuseArgument(): CliError {
  return new CliError(
    EXIT.usage,
    'a secret cannot be given on the command line: the process list and the shell history would show it',
    [
      'Type it at the prompt, pipe it (--stdin), or take it from a variable (--from VARIABLE) or a file (--file FILE).',
      'Treat the value as exposed: replace it at the service that issued it.',
    ],
  );
}

/** The value, if it is not obviously the credential of another service or a placeholder. */
async function readValue(call: Call<SealOptions>, service: SealedService): Promise<string> {
  const { context, options } = call;
  const value = options.from === undefined ? await promptValue(call, service) : variableValue(call, options.from);
  if (isStandIn(value) || (await knownPlaceholders(call)).includes(value.trim())) {
    throw new CliError(EXIT.usage, 'this is a placeholder of svc, not a credential: nothing was changed');
  }
  const other = serviceOfShape(value);
  if (other === null || other === service.name) return value;
  const question = `This looks like a credential of ${other}, and would be sent to ${service.title}.`;
  if (context.interactive && (await askYes(context, `${question} Store it anyway?`))) return value;
  throw new CliError(EXIT.failed, `${question} Nothing was changed`, [`For ${other}: svc seal ${other}`]);
}

function promptValue({ context, options, print }: Call<SealOptions>, service: SealedService): Promise<string> {
  if (context.interactive) print.note(`${service.title}: paste ${service.credential}. See ${service.source.url}`);
  return readSecret(context, options);
}

function variableValue({ context, options }: Call<SealOptions>, name: string): string {
  if (options.stdin === true || options.file !== undefined) {
    throw new CliError(EXIT.usage, '--from was given with --stdin or --file: choose one');
  }
  const value = context.env[name];
  if (value !== undefined && value !== '') return value;
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
    throw new CliError(EXIT.usage, '--from takes the name of an environment variable, never the value itself');
  }
  const near = didYouMean(name, Object.keys(context.env));
  throw new CliError(EXIT.usage, `--from ${name}: it is not set in your environment${near}`);
}

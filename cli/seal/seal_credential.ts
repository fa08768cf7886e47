import { randomBytes } from 'node:crypto';
import { formatVaultReference, parseOwnVaultPath } from '../../shared/model/vault_path.ts';
import type { HostBindingRecord, ValidHostBinding } from '../../shared/wire/host_binding.ts';
import { secretsPage, type SecretRecord } from '../../shared/wire/secrets.ts';
import {
  bindingsOfService,
  type SealedService,
  type ServiceField,
  type ServiceValues,
} from '../../shared/wire/sealed_service.ts';
import { listAllBindings } from '../bindings/find_binding.ts';
import { makeSentinel } from '../bindings/sentinel.ts';
import { flagOf, validateBinding } from '../bindings/binding_input.ts';
import { loadTemplates } from '../bindings/binding_templates.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { askOrStop, isYes } from '../terminal/ask.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import type { SecretSource } from '../terminal/read_secret.ts';
import { carryOutSeal, planSeal, type Sealed, type SealStep } from './seal_service.ts';
import { capitalise } from '../../shared/model/sentence.ts';

export type SealOptions = SecretSource & {
  readonly from?: string;
  readonly as?: string;
  readonly host?: string;
  readonly username?: string;
  readonly accessKeyId?: string;
  readonly region?: string;
  readonly service?: string;
  readonly owner: string;
  readonly yes?: boolean;
  readonly value?: true;
};

/** What is sealed, and where its value comes from. */
interface SealSource {
  readonly values: ServiceValues;
  /** Called once nothing else can be missing. */
  readonly readValue: () => Promise<string>;
  /** Asked with the hosts that would get the credential; throws if the person declines. */
  readonly confirm?: (hosts: readonly string[]) => Promise<void>;
}

/** Stores the credential of a service with all its bindings, and asks for what is missing. */
export async function sealService(
  call: Call<SealOptions>,
  service: SealedService,
  { values, readValue: read, confirm }: SealSource,
): Promise<SealedAccount> {
  const { owner } = call.options;
  const client = controlClient(call.context, call.options);
  const plan = await planService(call, client, service, values);
  const { path, stored, existing, steps, hosts } = plan;
  warnOfLostDefault(call, plan);
  await confirm?.(hosts);
  if (stored !== null) await confirmReplacement(call, stored, hosts);
  const description = `sealed for ${service.title}`;
  const sealed = await carryOutSeal(client, steps, { path, value: await read(), owner, description });
  return { ...sealed, beside: hostsBeside(existing, sealed) };
}

/** What a seal would change. */
export interface PlannedSeal {
  readonly path: string;
  /** What it would replace. */
  readonly stored: SecretRecord | null;
  readonly existing: readonly HostBindingRecord[];
  readonly steps: readonly SealStep[];
  /** All hosts that would get the credential. */
  readonly hosts: readonly string[];
}

export async function planService(
  call: Call<SealOptions>,
  client: HttpClient,
  service: SealedService,
  values: ServiceValues,
): Promise<PlannedSeal> {
  const { owner } = call.options;
  const path = pathOf(call, service);
  const stored = await findStored(client, path, owner);
  const bindings = await bindingsFor(call, service, path, values);
  const existing = await listAllBindings(client, owner);
  const steps = planSeal(existing, bindings, call.options.as === undefined ? null : placeholderMaker(bindings));
  const bound = existing.filter((record) => record.credential_ref === formatVaultReference(path));
  const hosts = [...new Set([...bound, ...bindings].map(({ host }) => host))];
  return { path, stored, existing, steps, hosts };
}

/**
 * Says before anything is stored what changes for sessions that choose no account: a host's only binding serves requests without its
 * placeholder too, and one of several does not.
 */
export function warnOfLostDefault(
  { print }: Pick<Call, 'print'>,
  { existing, steps }: Pick<PlannedSeal, 'existing' | 'steps'>,
): void {
  const lost = steps.flatMap(({ kind, binding: { host, emit_mechanism: emit, credential_ref: reference } }) => {
    const [only, ...more] = existing.filter((record) => record.host === host);
    const isDefault = more.length === 0 && only?.emit_mechanism === 'sentinel-swap';
    return kind === 'create' && emit === 'sentinel-swap' && isDefault && only.credential_ref !== reference
      ? [host]
      : [];
  });
  if (lost.length === 0) return;
  print.warn(
    `requests to ${[...new Set(lost)].join(', ')} without a placeholder will get no credential any more, because the host gets a second account`,
  );
}

/** A sealed credential, and the hosts that another account has as well. */
interface SealedAccount extends Sealed {
  readonly beside: readonly HostBeside[];
}

interface HostBeside {
  readonly host: string;
  /** Whether one of the accounts there has no placeholder, so that it is the default. */
  readonly hasDefault: boolean;
}

function hostsBeside(existing: readonly HostBindingRecord[], { secret, bindings }: Sealed): readonly HostBeside[] {
  return bindings.flatMap(({ record }) => {
    const { host } = record;
    const others = existing.filter((other) => other.host === host && other.credential_ref !== secret.ref);
    const hasDefault = [record, ...others].some(({ emit_mechanism: emit }) => emit === 'inject');
    return others.length === 0 ? [] : [{ host, hasDefault }];
  });
}

/** Makes a placeholder for a second account. A path of the person's choice says that it is meant as one. */
function placeholderMaker([first]: readonly ValidHostBinding[]): () => string {
  return () => makeSentinel(first?.host ?? '', first?.scheme ?? '', randomBytes);
}

function pathOf({ options }: Call<SealOptions>, service: SealedService): string {
  const path = parseOwnVaultPath((options.as ?? service.secret).replace(/^vault:\/\//, ''));
  if (path.ok) return path.value;
  throw new CliError(EXIT.usage, `--as: ${path.error.message}`);
}

async function findStored(client: HttpClient, path: string, owner: string): Promise<SecretRecord | null> {
  const stored = await fetchAllPages(client, '/v1/secrets', secretsPage, { owner });
  return stored.find((secret) => secret.path === path) ?? null;
}

/** Only this needs a confirmation: the earlier value is lost for good. */
async function confirmReplacement(
  { context, options }: Call<SealOptions>,
  { ref }: SecretRecord,
  hosts: readonly string[],
): Promise<void> {
  if (options.yes === true) return;
  if (!context.interactive) {
    throw new CliError(
      EXIT.usage,
      `${ref} is stored already: its value would be replaced, and cannot be brought back`,
      ['To replace it: --yes. To store another credential of the service: --as PATH.'],
    );
  }
  const question = `${ref} is stored already. Replace its value, which is for ${hosts.join(', ')}? [y/N] `;
  if (isYes(await askOrStop(context, question))) return;
  throw new CliError(EXIT.failed, 'nothing was changed');
}

async function bindingsFor(
  call: Call<SealOptions>,
  service: SealedService,
  path: string,
  known: ServiceValues,
): Promise<readonly ValidHostBinding[]> {
  const templates = loadTemplates(call.context.root);
  const { owner } = call.options;
  const values: { -readonly [F in ServiceField]?: string } = { ...known };
  const given = { values, credentialRef: formatVaultReference(path), owner };
  let filled = bindingsOfService(service, templates, given);
  if (!filled.ok) {
    for (const field of filled.error) values[field] = await askFor(call, service, field);
    filled = bindingsOfService(service, templates, given);
  }
  if (!filled.ok) throw new CliError(EXIT.usage, `${service.name} needs ${filled.error.map(flagOf).join(', ')}`);
  return filled.value.map((fields) => {
    const binding = validateBinding(fields, 'flags');
    if (binding.ok) return binding.value;
    throw new CliError(EXIT.usage, `${service.name} cannot be sealed like this:`, binding.error.map(hostFlag));
  });
}

/** The host is an argument of `svc binding add`, but an option here. */
function hostFlag(text: string): string {
  return text.replace(/^HOST /, '--host ');
}

async function askFor(
  { context, options }: Call<SealOptions>,
  service: SealedService,
  field: ServiceField,
): Promise<string> {
  const flag = field === 'host' ? '--host' : flagOf(field);
  const what = service.asks[field] ?? field;
  if (!context.interactive || options.stdin === true) {
    throw new CliError(EXIT.usage, `${service.name} needs ${flag}: ${what}`);
  }
  const answer = (await askOrStop(context, `${capitalise(what)}: `)).trim();
  if (answer !== '') return answer;
  throw new CliError(EXIT.usage, `${service.name} needs ${flag}: nothing was changed`);
}

/** Lists what was made. */
export function reportSealed(
  { print }: Call<SealOptions>,
  service: SealedService,
  { secret, bindings, beside }: SealedAccount,
): void {
  const value = {
    service: service.name,
    secret,
    bindings: bindings.map(({ record, created }) => ({ ...record, created })),
  };
  const stored = secret.version === 1 ? `stored ${secret.ref}` : `replaced the value of ${secret.ref}`;
  const lines = bindings.map(({ record, created }) => {
    const mark = created ? '+' : '=';
    const effect = record.effect === undefined ? '' : `, ${record.effect}`;
    const hands = record.sentinel?.env === undefined ? '' : `, placeholder in ${record.sentinel.env}`;
    return `  ${mark} ${record.host} (${record.scheme}${effect}${hands})  ${record.id}\n`;
  });
  print.data(value, () => (print.person ? `${stored}\n${lines.join('')}` : `${secret.ref}\n`));
  if (!print.person) return;
  if (beside.length > 0) print.note(secondAccountText(secret, beside));
  else if (service.try !== undefined) print.note(`Try it: svc run -- ${service.try}`);
}

/** How a session comes to the second account, and what changes for sessions that choose none. */
function secondAccountText({ path }: SealedAccount['secret'], beside: readonly HostBeside[]): string {
  const hosts = (some: readonly HostBeside[]): string => some.map(({ host }) => host).join(', ');
  const withoutDefault = beside.filter(({ hasDefault }) => !hasDefault);
  return [
    `${hosts(beside)}: these have another account too. To use this one:`,
    `  in a folder: write secrets = ["${path}"] into .svc.toml there, then: svc trust`,
    `  in one session: svc run --use ${path} -- COMMAND`,
    '  by request: with the placeholder of its binding',
    ...(withoutDefault.length === 0
      ? []
      : [`In other sessions, requests to ${hosts(withoutDefault)} without a placeholder get no credential.`]),
  ].join('\n');
}

import { randomBytes } from 'node:crypto';
import type { ChosenSecret } from '../../shared/model/account_choice.ts';
import type { HostBindingRecord } from '../../shared/wire/host_binding.ts';
import { serviceOfShape } from '../../shared/model/credential_shapes.ts';
import { VAULT_SCHEME } from '../../shared/model/vault_path.ts';
import { hostBindingsPage } from '../../shared/wire/host_bindings.ts';
import { secretsPage, type SecretRecord } from '../../shared/wire/secrets.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT, isUnreachable } from '../exit_codes.ts';
import { warnOfLostDefault } from '../seal/seal_credential.ts';
import { carryOutSeal, type SealStep } from '../seal/seal_service.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import { accountPlaceholder, accountReference } from './account_login.ts';
import { ACCOUNT } from './agent_names.ts';
import { bindingsOf, type AgentLogin, type AgentProfile } from './agent_profile.ts';
import { makePlaceholder } from './placeholder_shape.ts';

/** What is stored: every binding of the caller, and every secret without its value. */
export interface Stored {
  readonly bindings: readonly HostBindingRecord[];
  readonly secrets: readonly SecretRecord[];
}

/** A login of an agent whose credential is stored and bound. */
export interface ReadyLogin {
  readonly login: UsedLogin;
  readonly placeholder: string;
  /** `vault://PATH`. */
  readonly reference: string;
}

/** What a run needs of a login. The agent's own has no variable: its placeholders are in its file. */
type UsedLogin = Pick<AgentLogin, 'name' | 'title' | 'also'> & {
  readonly variable: string | null;
  readonly bindings: readonly { readonly host: string }[];
};

export async function readStored(client: HttpClient): Promise<Stored> {
  const [bindings, secrets] = await Promise.all([
    fetchAllPages(client, '/v1/host-bindings', hostBindingsPage),
    fetchAllPages(client, '/v1/secrets', secretsPage),
  ]);
  return { bindings, secrets };
}

/** The logins that work: every host is bound with one placeholder, and the secret is stored. The agent's own comes first. */
export function findReadyLogins(
  profile: AgentProfile,
  stored: Stored,
  chosen: readonly ChosenSecret[] = [],
): readonly ReadyLogin[] {
  const ofProfile = profile.logins.flatMap((login) => findReadyLogin(login, stored, chosen) ?? []);
  const all = [...findReadyAccount(profile, stored), ...ofProfile];
  // The proxy refuses the placeholder of any other login at their hosts.
  const isChosen = ({ reference }: ReadyLogin): boolean => rankOf(chosen, reference) < chosen.length;
  return all.some(isChosen) ? all.filter(isChosen) : all;
}

/** The place of a secret among the chosen ones; their number if it is none of them. */
function rankOf(chosen: readonly ChosenSecret[], reference: string): number {
  const at = chosen.findIndex(({ path }) => reference === `${VAULT_SCHEME}${path}`);
  return at < 0 ? chosen.length : at;
}

function findReadyAccount(profile: AgentProfile, { bindings }: Stored): readonly ReadyLogin[] {
  const placeholder = accountPlaceholder(profile, bindings);
  const { account } = profile;
  if (account === undefined || placeholder === null) return [];
  const hosts = account.hosts.map((host) => ({ host }));
  const login = { name: ACCOUNT, title: account.title, variable: null, also: [], bindings: hosts };
  return [{ login, placeholder, reference: accountReference(profile) }];
}

function findReadyLogin(
  login: AgentLogin,
  { bindings, secrets }: Stored,
  chosen: readonly ChosenSecret[],
): ReadyLogin | null {
  const serving = bindings.filter((record) => servesLogin(record, login));
  const rank = ({ credential_ref: reference }: HostBindingRecord): number => rankOf(chosen, reference);
  for (const first of serving.toSorted((a, b) => rank(a) - rank(b))) {
    const placeholder = first.sentinel?.value ?? '';
    const serves = (host: string): boolean =>
      bindings.some(
        (record) => record.host === host && servesLogin(record, login) && record.sentinel?.value === placeholder,
      );
    const { credential_ref: reference, owner } = first;
    const isStored = secrets.some((secret) => secret.ref === reference && secret.owner === owner);
    if (isStored && login.bindings.every(({ host }) => serves(host))) return { login, placeholder, reference };
  }
  return null;
}

/** A binding that hands out its placeholder in the login's variable, and writes the credential as the agent does. */
function servesLogin(record: HostBindingRecord, login: AgentLogin): boolean {
  return (
    record.sentinel?.env === login.variable &&
    login.bindings.some(
      (fields) =>
        fields.host === record.host &&
        fields.scheme === record.scheme &&
        fields.header?.toLowerCase() === record.header?.toLowerCase() &&
        fields.template === record.template &&
        fields.query_param === record.query_param &&
        fields.username === record.username,
    )
  );
}

/** The credential for a login: a new value, or a secret that is stored already. */
interface Credential {
  readonly value?: string;
  /** Where it is stored, or will be; by default the path that the agent uses, or that of the profile. */
  readonly path?: string;
  /** The person named the path, so it may be a second account. */
  readonly mayBeSecond?: boolean;
}

/** Binds the login's hosts, and stores the credential if its value is given. If a step fails, the bindings made are deleted. */
export async function storeLogin(
  { print }: Pick<Call, 'print'>,
  client: HttpClient,
  profile: AgentProfile,
  login: AgentLogin,
  { value, path: wanted, mayBeSecond = false }: Credential,
): Promise<ReadyLogin> {
  const stored = await readStored(client);
  const ready = findReadyLogin(login, stored, wanted === undefined ? [] : [{ path: wanted, by: 'option', from: null }]);
  const path = wanted ?? ready?.reference.replace(VAULT_SCHEME, '') ?? login.secret;
  const reference = `${VAULT_SCHEME}${path}`;
  const isStored = stored.secrets.some((secret) => secret.ref === reference && secret.owner === 'personal');
  if (value !== undefined && ready?.reference !== reference && isStored) throw pathTakenError(profile, login, path);
  const { placeholder, steps, isSecond } = planLogin(profile, login, { path, mayBeSecond }, stored.bindings);
  warnOfLostDefault({ print }, { existing: stored.bindings.filter(({ owner }) => owner === 'personal'), steps });
  if (value === undefined) await carryOutSeal(client, steps, null);
  else await carryOutSeal(client, steps, { path, value, owner: 'personal', description: login.title });
  if (isSecond) print.note(secondAccountText(profile, path));
  return { login, placeholder, reference };
}

function secondAccountText({ name, title }: AgentProfile, path: string): string {
  return [
    `${title} has another account too, which it uses where none is chosen. To use this one:`,
    `  in a folder: write secrets = ["${path}"] into .svc.toml there, then: svc trust`,
    `  in one session: svc run --use ${path} ${name}`,
  ].join('\n');
}

/** The bindings of a login that are missing, and those that are there: they tell the placeholder. */
function planLogin(
  profile: AgentProfile,
  login: AgentLogin,
  { path, mayBeSecond }: { readonly path: string; readonly mayBeSecond: boolean },
  bindings: readonly HostBindingRecord[],
): { readonly placeholder: string; readonly steps: readonly SealStep[]; readonly isSecond: boolean } {
  const reference = `${VAULT_SCHEME}${path}`;
  const serving = bindings.filter((record) => servesLogin(record, login) && record.owner === 'personal');
  const known = serving.filter((record) => record.credential_ref === reference);
  const elsewhere = serving.find((record) => record.credential_ref !== reference);
  const isNew = elsewhere !== undefined && known.length === 0;
  if (isNew && !mayBeSecond) {
    throw new CliError(
      EXIT.failed,
      `${elsewhere.host} is already bound to ${elsewhere.credential_ref} for ${login.variable}: nothing was changed`,
      [
        `To add a second account: svc login ${profile.name} --as ${login.name} --secret PATH, with a path of its own`,
        `To bind the host anew, first: svc binding rm ${elsewhere.id}`,
      ],
    );
  }
  const placeholder = known[0]?.sentinel?.value ?? makePlaceholder(login.placeholder, randomBytes);
  const steps = bindingsOf(profile, login, { path, placeholder }).map((binding): SealStep => {
    const record = known.find(({ host, sentinel }) => host === binding.host && sentinel?.value === placeholder);
    return record === undefined ? { kind: 'create', binding } : { kind: 'keep', binding, record };
  });
  return { placeholder, steps, isSecond: isNew };
}

function pathTakenError(profile: AgentProfile, login: AgentLogin, path: string): CliError {
  return new CliError(
    EXIT.failed,
    `vault://${path} is stored already, and ${profile.title} does not use it: nothing was changed`,
    [
      `To use it: svc login ${profile.name} --as ${login.name} --secret ${path}`,
      `To use another one: svc login ${profile.name} --as ${login.name} --secret PATH, with a new path`,
    ],
  );
}

/**
 * The login that a credential is for, by what it begins with and by its shape. A credential of another service is refused, so that a paste in
 * the wrong place is not sent there.
 */
export function loginOf(
  profile: AgentProfile,
  value: string,
  all: readonly AgentProfile[],
  as: string | undefined,
): AgentLogin {
  if (as !== undefined) return requireLogin(profile, as);
  const fitting = profile.logins.filter(({ prefix }) => prefix === undefined || value.startsWith(prefix));
  const best = fitting.toSorted((a, b) => prefixLength(b) - prefixLength(a))[0];
  const others = all
    .flatMap(({ logins }) => logins)
    .filter((other) => other.prefix !== undefined && value.startsWith(other.prefix))
    .filter((other) => best === undefined || prefixLength(other) > prefixLength(best));
  const [other] = others.toSorted((a, b) => prefixLength(b) - prefixLength(a));
  const service = serviceOfShape(value);
  const isForeign = service !== null && best !== undefined && service !== serviceOfLogin(best);
  if (best !== undefined && other === undefined && !isForeign) return best;
  const wanted = profile.logins.map(({ title, prefix }) => (prefix === undefined ? title : `${title} (${prefix}…)`));
  const likely = other?.title ?? (service === null ? null : `a credential of ${service}`);
  const looksLike = likely === null ? '' : `; it looks like: ${likely}`;
  throw new CliError(EXIT.usage, `this is no ${wanted.join(' and no ')}${looksLike}: nothing was stored`, [
    `If it is one all the same: svc login ${profile.name} --as ${profile.logins[0]?.name ?? 'LOGIN'}`,
  ]);
}

/** The service whose credentials have the shape of the login's placeholder; null if that is no known shape. */
function serviceOfLogin({ placeholder }: AgentLogin): string | null {
  return serviceOfShape(makePlaceholder(placeholder, (count) => new Uint8Array(count)));
}

function prefixLength({ prefix }: AgentLogin): number {
  return prefix?.length ?? 0;
}

export function requireLogin(profile: AgentProfile, name: string): AgentLogin {
  const found = profile.logins.find((login) => login.name === name);
  if (found !== undefined) return found;
  const names = profile.logins.map((login) => login.name).join(', ');
  throw new CliError(EXIT.usage, `${profile.title} has no login ${JSON.stringify(name)}: it has ${names || 'none'}`);
}

/** Reads what is stored; null if the control plane cannot be reached. */
export async function readStoredIfReachable(client: () => HttpClient): Promise<Stored | null> {
  try {
    return await readStored(client());
  } catch (error) {
    if (isUnreachable(error)) return null;
    throw error;
  }
}

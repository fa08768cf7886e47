import { findPresentedCredential } from '../../shared/inject/find_presented.ts';
import type { OutgoingRequest } from '../../shared/inject/outgoing_request.ts';
import { findStrayPlaceholder } from '../../shared/inject/stray_placeholder.ts';
import type { AccountChoice } from '../../shared/model/account_choice.ts';
import type { InstalledConnector } from '../../shared/model/connector.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import { type Refusal, refusal } from '../../shared/model/refusal.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { formatVaultReference } from '../../shared/model/vault_path.ts';
import { type Accounts, narrowToChosen } from '../../shared/resolve/account_choice.ts';
import type { Policy } from '../../shared/resolve/resolve.ts';

/** The choice of the session that a request comes from, and the host that it goes to. */
interface Asking {
  readonly choice: AccountChoice | null;
  readonly host: string;
  /** Null for an operation that is run by name: it has no placeholder. */
  readonly request: OutgoingRequest | null;
}

/**
 * The bindings that the session may use for a request, of those that apply to its host. A request with the placeholder of
 * another account is refused, and so is every request once the chosen binding is gone. The messages are for the agent: they
 * name no way to another account.
 */
export function accountsFor(
  { choice, host, request }: Asking,
  bindings: readonly HostBinding[],
): Result<Accounts, Refusal> {
  const accounts = narrowToChosen(choice, host, bindings);
  if (accounts === null) {
    const message = `the account that this session chose for ${host} has no binding there any more, and no other account is used`;
    return err(refusal('credential_unavailable', message));
  }
  if (request === null) return ok(accounts);
  const other = findOtherAccount(accounts, request);
  if (other === undefined) return ok(accounts);
  const message = `this session uses ${names(accounts)} for ${host}, and the request has the placeholder of ${formatVaultReference(other.credential.path)}`;
  return err(refusal('account_not_chosen', message));
}

/**
 * The binding of another account whose placeholder is in the request: in the place of its credential, or anywhere else in the
 * target and the headers, such as in a Basic password. A placeholder that is only the beginning of a chosen one does not count.
 */
function findOtherAccount({ bindings, others }: Accounts, request: OutgoingRequest): HostBinding | undefined {
  const own = bindings.filter((binding) => findStrayPlaceholder([binding], request) !== null);
  return others.find((other) => {
    if (findPresentedCredential(other, request) === 'sentinel') return true;
    return findStrayPlaceholder([other], request) !== null && !own.some((binding) => isPartOf(other, binding));
  });
}

function isPartOf({ emit: part }: HostBinding, { emit: whole }: HostBinding): boolean {
  if (part.mechanism !== 'sentinel-swap' || whole.mechanism !== 'sentinel-swap') return false;
  return whole.sentinel.includes(part.sentinel);
}

/** An operation has the credential of its connector, which may be another account than the one that the session chose for the host. */
export function checkConnectorAccount(
  asking: Asking,
  policy: Policy,
  { spec, credential }: InstalledConnector,
): Result<void, Refusal> {
  if (asking.choice === null) return ok(undefined);
  const accounts = accountsFor(asking, policy.bindingsFor(asking.host));
  if (!accounts.ok) return accounts;
  const { chosen } = accounts.value;
  const isChosen = chosen.some(({ owner, path }) => owner === credential.owner && path === credential.path);
  if (chosen.length === 0 || isChosen) return ok(undefined);
  const message = `this session uses ${names(accounts.value)} for ${asking.host}, and the request is an operation of the connector ${spec.fqn}, which has another credential`;
  return err(refusal('account_not_chosen', message));
}

function names({ chosen }: Accounts): string {
  return chosen.map(({ path }) => formatVaultReference(path)).join(', ');
}

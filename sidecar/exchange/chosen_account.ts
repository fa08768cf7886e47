import { findPresentedCredential } from '../../shared/inject/find_presented.ts';
import type { OutgoingRequest } from '../../shared/inject/outgoing_request.ts';
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
  const other = accounts.others.find((binding) => findPresentedCredential(binding, request) === 'sentinel');
  if (other === undefined) return ok(accounts);
  const message = `this session uses ${names(accounts)} for ${host}, and the request has the placeholder of ${formatVaultReference(other.credential.path)}`;
  return err(refusal('account_not_chosen', message));
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

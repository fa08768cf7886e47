import type { AccountChoice } from '../../shared/model/account_choice.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import { orderBindings } from './sentinels.ts';

/** How long a client keeps the keys. None of them is a credential, so this only says when it asks again. */
const LIFE_MS = 3_600_000;

/** The reply of the container credentials of AWS, with keys that the proxy replaces. */
interface AwsPlaceholder {
  readonly AccessKeyId: string;
  readonly SecretAccessKey: string;
  /** Some clients take no key set without it. */
  readonly Token: string;
  readonly Expiration: string;
}

/**
 * Keys for the clients of AWS in a session; null if no binding of the session signs. The access key id is the one by which the
 * proxy knows its own signatures, also in a presigned URL: the sentinel of the first such binding, or its access key id, which is
 * not secret. A secret never is in it.
 */
export function awsPlaceholder(
  bindings: readonly HostBinding[],
  { choice, expiresAt }: { readonly choice: AccountChoice | null; readonly expiresAt: number },
  nowMs: number,
): AwsPlaceholder | null {
  for (const { injection, emit } of orderBindings(bindings, choice)) {
    if (injection.scheme !== 'sigv4-resign') continue;
    return {
      AccessKeyId: emit.mechanism === 'sentinel-swap' ? emit.sentinel : injection.accessKeyId,
      SecretAccessKey: 'placeholder-that-the-proxy-replaces',
      Token: 'placeholder',
      Expiration: new Date(Math.min(nowMs + LIFE_MS, expiresAt)).toISOString(),
    };
  }
  return null;
}

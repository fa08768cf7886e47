import { isDeepStrictEqual } from 'node:util';
import { type CertificateAndKey, readCertificateAndKey } from '../../machine/client_certificate.ts';
import { enforceCertificate } from '../../shared/enforce/client_certificate.ts';
import type { CertificateFacts } from '../../shared/audit/exchange_event.ts';
import type { ClientCertificate } from '../../shared/model/host_binding.ts';
import { refusal, type Refusal } from '../../shared/model/refusal.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Secret } from '../../shared/model/secret.ts';
import { formatVaultReference } from '../../shared/model/vault_path.ts';
import type { Policy } from '../../shared/resolve/resolve.ts';
import type { PresentedCertificate, ReleasedCredential } from '../ports.ts';
import { credentialsFor, type ExchangePorts, type ExchangeTunnel } from './exchange_ports.ts';
import { createInForce, type InForce } from './in_force.ts';
import { auditUnavailable } from './outcome.ts';

/** A request for which an upstream connection is to be opened. */
interface Asking {
  readonly method: string;
  /** The fields that the client sent. */
  readonly fields: readonly { readonly name: string }[];
  /** It is an operation of a connector, whose effect and approval are checked by themselves. */
  readonly isOperation: boolean;
  /** What else has to hold before the key is looked up; absent: it was checked. */
  readonly checkAuthority?: () => Result<unknown, Refusal>;
}

type Taken = Result<PresentedCertificate | null, Refusal>;
type Ports = Pick<ExchangePorts, 'policy' | 'credentials' | 'scopes' | 'audit' | 'clock'>;

const NONE: Taken = ok(null);

/** Checks what is known before the body is read and before anybody is asked: the effect of the host's certificate, if it has one. */
export function checkCertificate(
  policy: Policy,
  { method, fields, isOperation }: Asking,
  { host, plain }: Pick<ExchangeTunnel, 'host' | 'plain'>,
): Result<void, Refusal> {
  const certificate = plain === true ? null : policy.certificateFor(host);
  if (certificate === null) return ok(undefined);
  const besideApprovals = !isOperation && policy.connectors.approvalHosts.has(host);
  return enforceCertificate(certificate, { host, method, fields, besideApprovals });
}

/**
 * The client certificate for a request that was decided and approved; null if its host has none. It is the last thing that is looked
 * up before the upstream is dialled, by the policy of now: contract -> authority -> audit -> key -> validity. Synchronous without one. Refuses as
 * the contract and the source do, and with `credential_unavailable` for what cannot be presented.
 */
export function takeCertificate(
  asking: Asking,
  tunnel: Pick<ExchangeTunnel, 'host' | 'plain'> & { readonly credentialsId: string | null },
  ports: Ports,
): Taken | Promise<Taken> {
  const policy = ports.policy.current();
  if (!policy.ok) return policy;
  const certificate = tunnel.plain === true ? null : policy.value.certificateFor(tunnel.host);
  if (certificate === null) return NONE;
  const allowed = checkCertificate(policy.value, asking, tunnel);
  if (!allowed.ok) return allowed;
  const authority = asking.checkAuthority?.() ?? ok(undefined);
  if (!authority.ok) return authority;
  if (!ports.audit.accepting) return err(auditUnavailable());
  return release(certificate, policy.value, tunnel.credentialsId, ports);
}

async function release(
  certificate: ClientCertificate,
  policy: Policy,
  credentialsId: string | null,
  ports: Ports,
): Promise<Taken> {
  const released = await credentialsFor(ports, credentialsId).resolve(certificate.credential);
  if (!released.ok) return released;
  const opened = openValue(released.value);
  const reference = formatVaultReference(certificate.credential.path);
  const { host } = certificate;
  const about = `the client certificate ${reference} for ${host}`;
  if (!opened.ok) return unusable(`${about} cannot be used: the secret ${opened.error}`, host);
  const { chain, key, notBefore, notAfter } = opened.value;
  const now = ports.clock.now();
  if (now >= notAfter) return unusable(`${about} expired on ${dateOf(notAfter)}`, host);
  if (now < notBefore) return unusable(`${about} is not valid before ${dateOf(notBefore)}`, host);
  const { version } = released.value;
  const inForce = certificateInForce(ports, policy, certificate, version);
  const lapsed = inForce();
  if (lapsed !== null) return err(lapsed);
  return ok({ id: `${certificate.id} ${version}`, reference, version, chain, key, inForce });
}

/** What was read of a value, for as long as the value itself is kept. */
const read = new WeakMap<Secret, Result<CertificateAndKey, string>>();

function openValue({ secret }: ReleasedCredential): Result<CertificateAndKey, string> {
  const known = read.get(secret) ?? readCertificateAndKey(secret.reveal());
  read.set(secret, known);
  return known;
}

function unusable(message: string, host: string): Result<never, Refusal> {
  const fix = `store another outside the session: svc cert add ${host} --cert FILE --key FILE`;
  return err(refusal('credential_unavailable', `${message}; ${fix}`));
}

function dateOf(time: number): string {
  return new Date(time).toISOString();
}

/** The record is the same, and its secret has the same value. */
function certificateInForce(
  { policy: source, credentials }: Ports,
  decided: Policy,
  certificate: ClientCertificate,
  version: string,
): InForce {
  const { host, credential } = certificate;
  const message = `the client certificate of ${host} was changed or removed while this request was in progress; send it again`;
  const holds = (policy: Policy): boolean => isDeepStrictEqual(policy.certificateFor(host), certificate);
  const look = createInForce(source, decided, message, holds);
  const isSame = (): boolean => credentials.findStoredVersion(credential) === version;
  return Object.assign(() => look() ?? (isSame() ? null : refusal('credential_unavailable', message)), {
    onChanged: look.onChanged,
  });
}

/** Of a request with a certificate and what else it was decided by: both have to be in force. */
export function bothInForce(inForce: InForce, certificate: PresentedCertificate | null): InForce {
  if (certificate === null) return inForce;
  return Object.assign(() => inForce() ?? certificate.inForce(), { onChanged: inForce.onChanged });
}

/** For the event of a request that the certificate of its host refused, by the policy of now; nothing if the host has none. */
export function refusedCertificate(
  { host, plain }: Pick<ExchangeTunnel, 'host' | 'plain'>,
  { policy: source, credentials }: Pick<Ports, 'policy' | 'credentials'>,
): { readonly certificate?: CertificateFacts } {
  const policy = source.current();
  const certificate = policy.ok && plain !== true ? policy.value.certificateFor(host) : null;
  if (certificate === null) return {};
  const { credential } = certificate;
  const reference = formatVaultReference(credential.path);
  return { certificate: { reference, version: credentials.findStoredVersion(credential) } };
}

/** For the event of a request that was sent; nothing without a certificate. */
export function certificateFacts(taken: PresentedCertificate | null): { readonly certificate?: CertificateFacts } {
  return taken === null ? {} : { certificate: { reference: taken.reference, version: taken.version } };
}

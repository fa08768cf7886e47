import { isDeepStrictEqual } from 'node:util';
import { enforceCertificate } from '../../shared/enforce/client_certificate.ts';
import type { CertificateFacts } from '../../shared/audit/exchange_event.ts';
import type { ClientCertificate } from '../../shared/model/host_binding.ts';
import type { RequestHead } from '../../shared/net/http/http1_head.ts';
import { refusal, type Refusal } from '../../shared/model/refusal.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { formatVaultReference } from '../../shared/model/vault_path.ts';
import type { Policy } from '../../shared/resolve/resolve.ts';
import type { PresentedCertificate, ReleasedCredential } from '../ports.ts';
import { credentialsFor, type ExchangePorts, type ExchangeTunnel } from './exchange_ports.ts';
import { alsoInForce, createInForce, type InForce } from './in_force.ts';
import { auditUnavailable } from './outcome.ts';

/** A request for which an upstream connection is to be opened. */
interface Asking {
  /** As the client sent it. */
  readonly head: Pick<RequestHead, 'method' | 'fields'>;
  /** It is an operation of a connector, whose effect and approval are checked by themselves. */
  readonly isOperation: boolean;
}

type Place = Pick<ExchangeTunnel, 'host' | 'plain'>;
type Taken = Result<PresentedCertificate | null, Refusal>;
type Ports = Pick<ExchangePorts, 'policy' | 'credentials' | 'scopes' | 'audit' | 'clock' | 'materials'>;

/** What {@link takeCertificate} gives for a host without one. */
export const NO_CERTIFICATE: Taken = ok(null);
const ADMITTED: Result<void, Refusal> = ok(undefined);

/** Checks what is known before the body is read and before anybody is asked: the effect of the host's certificate, if it has one. */
export function checkCertificate(
  policy: Policy,
  { method, fields }: Asking['head'],
  isOperation: boolean,
  place: Place,
): Result<void, Refusal> {
  const certificate = findCertificate(policy, place);
  if (certificate === null) return ADMITTED;
  const { host } = place;
  const besideApprovals = !isOperation && policy.connectors.approvalHosts.has(host);
  return enforceCertificate(certificate, { host, method, fields, besideApprovals });
}

function findCertificate(policy: Policy, { host, plain }: Place): ClientCertificate | null {
  return plain === true ? null : policy.certificateFor(host);
}

/** False for a host without a client certificate, for which there is nothing to take. */
export function mayHaveCertificate(place: Place, { policy: source }: Pick<Ports, 'policy'>): boolean {
  const policy = source.current();
  return !policy.ok || findCertificate(policy.value, place) !== null;
}

/**
 * The client certificate for a request that was decided and approved; null if its host has none. It is the last thing that is looked
 * up before the upstream is dialled, by the policy of now: contract -> audit -> key -> validity. Refuses as
 * the contract and the source do, and with `credential_unavailable` for what cannot be presented.
 */
export async function takeCertificate(
  { head, isOperation }: Asking,
  tunnel: Place & { readonly credentialsId: string | null },
  ports: Ports,
): Promise<Taken> {
  const now = ports.policy.current();
  if (!now.ok) return now;
  const policy = now.value;
  const certificate = findCertificate(policy, tunnel);
  if (certificate === null) return NO_CERTIFICATE;
  const allowed = checkCertificate(policy, head, isOperation, tunnel);
  if (!allowed.ok) return allowed;
  if (!ports.audit.accepting) return err(auditUnavailable());
  const released = await credentialsFor(ports, tunnel.credentialsId).resolve(certificate.credential);
  return released.ok ? present(certificate, released.value, policy, ports) : released;
}

function present(
  certificate: ClientCertificate,
  { secret, version }: ReleasedCredential,
  policy: Policy,
  ports: Ports,
): Taken {
  const opened = ports.materials.certificateIn(secret);
  const reference = formatVaultReference(certificate.credential.path);
  const { host } = certificate;
  const about = `the client certificate ${reference} for ${host}`;
  if (!opened.ok) return unusable(`${about} cannot be used: the secret ${opened.error}`, host);
  const { chain, key, notBefore, notAfter } = opened.value;
  const now = ports.clock.now();
  if (now >= notAfter) return unusable(`${about} expired on ${dateOf(notAfter)}`, host);
  if (now < notBefore) return unusable(`${about} is not valid before ${dateOf(notBefore)}`, host);
  const inForce = certificateInForce(ports, policy, { certificate, version, notAfter });
  const lapsed = inForce();
  if (lapsed !== null) return err(lapsed);
  return ok({ id: `${certificate.id} ${version}`, reference, version, chain, key, inForce });
}

function unusable(message: string, host: string): Result<never, Refusal> {
  const fix = `store another outside the session: svc cert add ${host} --cert FILE --key FILE`;
  return err(refusal('credential_unavailable', `${message}; ${fix}`));
}

function dateOf(time: number): string {
  return new Date(time).toISOString();
}

interface Presented {
  readonly certificate: ClientCertificate;
  readonly version: string;
  readonly notAfter: number;
}

/** The record is the same, its secret has the same value, and the certificate has not expired meanwhile. */
function certificateInForce(
  { policy: source, credentials, clock }: Ports,
  decided: Policy,
  { certificate, version, notAfter }: Presented,
): InForce {
  const { host, credential } = certificate;
  const expired = `the client certificate of ${host} expired while this request was in progress`;
  const message = `the client certificate of ${host} was changed or removed while this request was in progress; send it again`;
  const holds = (policy: Policy): boolean => isDeepStrictEqual(policy.certificateFor(host), certificate);
  const look = createInForce(source, decided, message, holds);
  const isSame = (): boolean => credentials.findStoredVersion(credential) === version;
  const problem = (): string | null => (clock.now() >= notAfter ? expired : isSame() ? null : message);
  return alsoInForce(look, () => {
    const why = problem();
    return why === null ? null : refusal('credential_unavailable', why);
  });
}

/** Of a request with a certificate and what else it was decided by: both have to be in force. */
export function bothInForce(inForce: InForce, certificate: PresentedCertificate | null): InForce {
  return certificate === null ? inForce : alsoInForce(inForce, certificate.inForce);
}

/** For the event of a request that the certificate of its host refused, by the policy of now; nothing if the host has none. */
export function refusedCertificate(
  place: Place,
  { policy: source, credentials }: Pick<Ports, 'policy' | 'credentials'>,
): { readonly certificate?: CertificateFacts } {
  const policy = source.current();
  const certificate = policy.ok ? findCertificate(policy.value, place) : null;
  if (certificate === null) return {};
  const { credential } = certificate;
  const reference = formatVaultReference(credential.path);
  return { certificate: { reference, version: credentials.findStoredVersion(credential) } };
}

/** For the event of a request that was sent. */
export function withCertificateFacts<Of extends object>(
  facts: Of,
  certificate: PresentedCertificate | null,
): Of & { readonly certificate?: CertificateFacts } {
  if (certificate === null) return facts;
  const { reference, version } = certificate;
  return { ...facts, certificate: { reference, version } };
}

import { err, ok, type Result } from '../../../shared/model/result.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { randomToken, sha256Base64Url } from '../../kernel/encoding.ts';
import { nowSeconds, type ServiceContext } from '../../kernel/service_context.ts';
import { findEnterpriseSaml, insertSamlAnswer } from '../../store/enterprise_saml.ts';
import { findSignInFlow } from '../../store/sign_in_flows.ts';
import { CLIENT_BEGINS, FLOW_SECONDS } from '../flows.ts';
import { takeAttempt, takeClientAttempt } from '../throttle.ts';
import { serviceProviderOf } from './saml_metadata.ts';
import { readResponse, type SamlProblem } from './saml_response.ts';
import { certificatesOf, requestIdOf, samlIssuer } from './saml_sign_in.ts';

/**
 * Limit the responses that are read: each is parsed before a signature can be checked, so a stranger can make it cost
 * something. A sign-in gets one response, and a few more if its person goes back and repeats it. A client gets as many
 * as it may start sign-ins.
 */
export const RESPONSES = { kind: 'SAML response by sign-in', most: 5, windowSeconds: FLOW_SECONDS };
export const CLIENT_RESPONSES = { ...CLIENT_BEGINS, kind: 'SAML response by client' };

/** The form from the provider's page. */
interface PostedResponse {
  readonly enterpriseId: string;
  readonly samlResponse: string;
  readonly relayState: string;
  /** The callback's URL under the host name that the browser called. */
  readonly redirectURL: string;
  /** Null: the runtime does not provide it. */
  readonly clientAddress: string | null;
}

/**
 * Accepts the response to a sign-in in progress, and returns the code for its browser. The response proves nothing about
 * the browser that brings it. Refuses with `not_found`, `sign_in_expired`, `too_many_attempts`, `sign_in_failed`, `email_required`.
 */
export async function receiveResponse(
  context: ServiceContext,
  { enterpriseId, samlResponse, relayState, redirectURL, clientAddress }: PostedResponse,
): Promise<Result<{ readonly code: string }, ApiError>> {
  const row = await findEnterpriseSaml(context.database, enterpriseId);
  if (row === null) return err(apiError('not_found', 'this enterprise has no SAML provider'));
  const flow = await findSignInFlow(context.database, await sha256Base64Url(relayState), nowSeconds(context));
  if (flow?.provider !== enterpriseId || flow.redirectUrl !== redirectURL) return err(notStarted());
  const allowed = await takeResponse(context, flow.stateHash, clientAddress);
  if (!allowed.ok) return allowed;
  const { entityId: audience, acsUrl } = serviceProviderOf(redirectURL);
  const requestId = requestIdOf(flow.extraHash);
  const keys = certificatesOf(row).map(({ publicKey }) => publicKey);
  const expected = { requestId, acsUrl, audience, issuer: row.entityId, keys, nowMs: context.clock.now() };
  const read = readResponse(samlResponse, expected);
  if (!read.ok) return err(refusalOf(read.error));
  const { assertionId, validUntilMs, nameId: subject, email, displayName } = read.value;
  const code = randomToken();
  const answer = {
    assertionHash: await sha256Base64Url(JSON.stringify([enterpriseId, row.entityId, assertionId])),
    enterpriseId,
    requestId,
    codeHash: await sha256Base64Url(code),
    identity: JSON.stringify({ issuer: samlIssuer(row.entityId), subject, email, displayName }),
    expiresAt: Math.max(Math.ceil(validUntilMs / 1000), flow.expiresAt),
  };
  const written = await context.database.write(insertSamlAnswer(context.database, answer, nowSeconds(context)));
  return written.ok
    ? ok({ code })
    : err(apiError('sign_in_failed', 'this SAML assertion was used already: sign in again'));
}

async function takeResponse(
  context: ServiceContext,
  stateHash: string,
  clientAddress: string | null,
): Promise<Result<void, ApiError>> {
  const ofClient = await takeClientAttempt(context, CLIENT_RESPONSES, clientAddress);
  return ofClient.ok ? takeAttempt(context, RESPONSES, stateHash) : ofClient;
}

function notStarted(): ApiError {
  const message =
    'this response belongs to no sign-in that was started here in the last ten minutes: start at the sign-in page, not at the provider';
  return apiError('sign_in_expired', message);
}

/** What a person or an admin is told, by problem. */
const MESSAGES: Readonly<Record<SamlProblem, string>> = {
  not_readable:
    'is not base64 of a plain XML document without a document type, comments and CDATA, of at most 2500 elements',
  not_a_response: 'is not a SAML 2.0 response',
  not_success: 'says that the provider did not sign you in',
  encrypted:
    'is encrypted, which svc does not support: turn off the encryption of assertions, NameIDs and attributes at the provider',
  not_one_assertion: 'does not contain exactly one assertion',
  duplicate_id: 'contains an id twice',
  not_signed: 'has no signature on the assertion itself: turn on signed assertions at the provider',
  signature_form: 'has a signature that does not cover exactly the assertion or the response',
  signature_algorithm:
    'is signed with an algorithm that is not allowed: use RSA with SHA-256 or SHA-512, and exclusive canonicalization',
  signature_invalid:
    'is not signed by a certificate of your enterprise’s provider: import its metadata again if the certificate changed',
  other_issuer: 'comes from another provider than your enterprise’s',
  other_destination: 'is meant for another address than this one',
  other_request: 'does not answer the sign-in that was started here',
  other_recipient: 'may not be presented at this address',
  other_audience: 'is meant for another service',
  not_valid_now: 'is expired, not valid yet, or valid for more than a day: check the provider’s clock',
  no_authentication: 'does not say that you authenticated',
  subject_form: 'has a subject or conditions in a form that svc does not support',
  subject_transient: 'names you by a transient id: choose a persistent one at the provider',
  no_email: 'has no single email address: send the attribute email, or a NameID of the format emailAddress',
};

function refusalOf(problem: SamlProblem): ApiError {
  const code = problem === 'no_email' ? 'email_required' : 'sign_in_failed';
  return apiError(code, `the SAML response ${MESSAGES[problem]}; nobody was signed in`);
}

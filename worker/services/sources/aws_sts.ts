import { err, ok, type Result } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import type { SourceOf } from '../../../shared/wire/sources/source_table.ts';
import { awsDomain } from '../../../shared/model/kms_key.ts';
import type { Outbound, OutboundReply } from '../../kernel/outbound.ts';
import type { Minted, MintFailure, MintPlan } from './source_port.ts';

/** A role of AWS that a source assumes, in either way. */
type RoleSource = SourceOf<'aws_assume_role'> | SourceOf<'aws_web_identity'>;

/** The key set of a session, by AWS's Security Token Service (API version 2011-06-15). */
export interface StsCall {
  readonly source: RoleSource;
  readonly action: 'AssumeRole' | 'AssumeRoleWithWebIdentity';
  /** Beside those of {@link RoleSource}. */
  readonly parameters: Readonly<Record<string, string>>;
  /** Signs the call, if it is to be signed. */
  readonly sign?: (call: UnsignedCall) => Promise<Result<Readonly<Record<string, string>>, MintFailure>>;
  readonly outbound: Outbound;
  readonly nowMs: number;
}

export interface UnsignedCall {
  readonly url: URL;
  readonly contentType: string;
  readonly body: Uint8Array<ArrayBuffer>;
}

const CONTENT_TYPE = 'application/x-www-form-urlencoded; charset=utf-8';

export async function callSts(call: StsCall): Promise<Result<Minted, MintFailure>> {
  const url = new URL(stsUrl(call.source));
  const { action, source, outbound } = call;
  const parameters = { Action: action, Version: '2011-06-15', ...roleParameters(source), ...call.parameters };
  const body = new TextEncoder().encode(new URLSearchParams(parameters).toString());
  const signed = (await call.sign?.({ url, contentType: CONTENT_TYPE, body })) ?? ok({});
  if (!signed.ok) return signed;
  const headers = { ...signed.value, 'content-type': CONTENT_TYPE, accept: 'text/xml', 'user-agent': 'svc' };
  const called = await outbound.call({ method: 'POST', url: url.href, headers, body });
  return called.ok ? readReply(call, url.host, called.value) : failed(called.error.message);
}

export function describeRole({
  role_arn: role,
  session_name: name,
  policy,
  policy_arns: arns = [],
}: RoleSource): string {
  const narrowed = [...(policy === undefined ? [] : ['a session policy']), ...arns];
  return `the role ${role} as ${name}${narrowed.length === 0 ? '' : `, narrowed by ${narrowed.join(', ')}`}`;
}

export function planRole(source: RoleSource): MintPlan {
  return {
    identity: sessionArn(source),
    scope: [...(source.policy === undefined ? [] : ['a session policy']), ...(source.policy_arns ?? [])],
    audience: null,
    providerUrl: stsUrl(source),
  };
}

export function stsUrl({ sts_url: url, region }: RoleSource): string {
  return url ?? `https://sts.${region}.${awsDomain(region)}/`;
}

function roleParameters(source: RoleSource): Record<string, string> {
  const { role_arn: arn, session_name: name, duration_seconds: seconds, policy, policy_arns: arns } = source;
  return {
    RoleArn: arn,
    RoleSessionName: name,
    DurationSeconds: String(seconds),
    ...(policy !== undefined && { Policy: policy }),
    ...members('PolicyArns', arns ?? [], 'arn'),
  };
}

/** A list in the form of the query protocol: `NAME.member.1`. */
export function members(name: string, values: readonly string[], field?: string): Record<string, string> {
  const end = field === undefined ? '' : `.${field}`;
  return Object.fromEntries(values.map((value, index) => [`${name}.member.${index + 1}${end}`, value]));
}

function readReply({ source, nowMs }: StsCall, host: string, reply: OutboundReply): Result<Minted, MintFailure> {
  const xml = new TextDecoder().decode(reply.body);
  if (reply.status !== 200) return failed(refusalOf(host, reply.status, xml));
  const [id, key, token] = ['AccessKeyId', 'SecretAccessKey', 'SessionToken'].map((name) => textOf(xml, name));
  const end = Date.parse(textOf(xml, 'Expiration') ?? '');
  if (id === undefined || key === undefined || token === undefined || id === null || key === null || token === null) {
    return failed(`the answer of ${host} has no key set`);
  }
  if (Number.isNaN(end)) return failed(`the answer of ${host} does not say when its key set ends`);
  if (textOf(xml, 'Arn') !== sessionArn(source))
    return failed(`${host} issued a key set of another session, which was discarded`);
  if (isNarrowed(source) && textOf(xml, 'PackedPolicySize') === null) {
    return failed(
      `${host} issued a key set without the session policies or tags that were asked for, which was discarded`,
    );
  }
  return ok({
    value: new Secret(key),
    signedAs: { accessKeyId: id, sessionToken: new Secret(token) },
    // Its clock may differ.
    expiresAtMs: Math.min(end, nowMs + source.duration_seconds * 1000),
  });
}

/** STS states the size of the policies and tags that it has put into the session. */
function isNarrowed(source: RoleSource): boolean {
  const tags = source.kind === 'aws_assume_role' ? source.tags : undefined;
  return source.policy !== undefined || source.policy_arns !== undefined || Object.keys(tags ?? {}).length > 0;
}

/** The ARN of the session of a role, whose path is not in it. */
function sessionArn({ role_arn: role, session_name: name }: RoleSource): string {
  const [, partition = '', , , account = ''] = role.split(':');
  return `arn:${partition}:sts::${account}:assumed-role/${role.split('/').at(-1) ?? ''}/${name}`;
}

/** The text of the only element with this name; null if there is none or another. No text of these replies has an entity. */
function textOf(xml: string, name: string): string | null {
  const found = [...xml.matchAll(new RegExp(`<${name}>\\s*([^<>&]{1,8192}?)\\s*</${name}>`, 'g'))];
  return found.length === 1 ? (found[0]?.[1] ?? null) : null;
}

const WHY: Readonly<Record<string, string>> = {
  AccessDenied: 'the caller may not assume this role, or its trust policy wants another external id, tag or subject',
  InvalidClientTokenId: 'there is no such access key id, or it is inactive',
  SignatureDoesNotMatch: 'the key is not that of the access key id, or the clock of the control plane is wrong',
  RequestExpired: 'the clock of the control plane is wrong',
  RegionDisabledException: 'STS is not active in this region for the account',
  MalformedPolicyDocument: 'the session policy is not valid',
  PackedPolicyTooLarge: 'the session policies and tags are too large together',
  ValidationError: 'a field is not valid; duration_seconds may be longer than the role allows',
  ExpiredTokenException: 'the signed identity has ended: the clock of the control plane is wrong',
  ExpiredToken: 'the signed identity has ended: the clock of the control plane is wrong',
  InvalidIdentityToken: 'it does not accept the signed identity: check issuer, audience, key_id and the published key',
  IDPRejectedClaim: 'the issuer rejected the identity',
  IDPCommunicationError: 'it could not fetch the published key of the issuer',
};

/** Only the code of an error is passed on. */
function refusalOf(host: string, status: number, xml: string): string {
  const code = textOf(xml, 'Code')
    ?.replaceAll(/[^\w.]/g, '')
    .slice(0, 64);
  if (code === undefined || code === '') return `${host} refused with status ${status}`;
  return `${host} refused: ${code}${WHY[code] === undefined ? '' : ` (${WHY[code]})`}`;
}

function failed(message: string): Result<never, MintFailure> {
  return err({ reason: 'failed', message });
}

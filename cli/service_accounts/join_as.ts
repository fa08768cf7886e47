import { join } from 'node:path';
import { z } from 'zod';
import { parseJson } from '../../shared/model/json.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { JOIN_REFUSALS, joinReply, type JoinReply, type JoinRefusal } from '../../shared/wire/service_accounts.ts';
import { callToken } from '../../machine/call_token.ts';
import {
  generateSidecarKeys,
  type Identity,
  identityOf,
  identityPath,
  saveIdentity,
} from '../../machine/sidecar_identity.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { CONTROL_NAME, REACH_FIX } from '../sign_in/sign_in_tokens.ts';
import { errorOfReply, httpClient, type RawReply } from '../terminal/http_client.ts';

/** What a job joins with. */
export interface Join {
  readonly origin: string;
  readonly serviceAccount: string;
  readonly token: string;
  readonly audience: string;
  /** Of the sidecar, in lists and in the audit log. */
  readonly name: string;
  readonly minutes: number | undefined;
  readonly home: string;
}

/** A sidecar whose identity is in the state directory. */
export interface Joined {
  readonly identity: Identity;
  readonly expiresAt: string;
}

/** Joins, and writes the identity of the new sidecar into the state directory. Throws `CliError` with the fix. */
export async function joinAs(context: Pick<CliContext, 'fetch'>, wanted: Join): Promise<Joined> {
  const keys = await generateSidecarKeys();
  const client = httpClient({ ...controlServer(context, wanted.origin), token: null });
  const reply = await client.send('POST', '/auth/join', {
    body: {
      service_account: wanted.serviceAccount,
      token: wanted.token,
      name: wanted.name,
      ...(wanted.minutes !== undefined && { minutes: wanted.minutes }),
      signing_key: { kty: 'OKP', crv: 'Ed25519', x: keys.signing.x },
      receiving_key: { kty: 'OKP', crv: 'X25519', x: keys.receiving.x },
    },
  });
  if (reply.status !== 201) throw refusalOf(reply, wanted);
  const { expires_at: expiresAt, ...enrolled } = readReply(reply);
  const record = { version: 1 as const, ...enrolled, signing_key: keys.signing, receiving_key: keys.receiving };
  const identity = await identityOf(record);
  await saveIdentity(identityPath(join(wanted.home, 'sidecar')), record);
  return { identity, expiresAt };
}

/** How a sidecar left: it ended now, or the control plane had ended it before. */
export type Left = 'left' | 'had_ended';

/** Ends the sidecar at its control plane. Throws `CliError` if that is not known to have happened. */
export async function leave(
  context: Pick<CliContext, 'fetch' | 'now'>,
  origin: string,
  identity: Identity,
): Promise<Left> {
  const target = '/v1/sidecar/leave';
  const { sidecarId, controlPlaneId, signingKey } = identity;
  const facts = { sidecarId, controlPlaneId, method: 'POST', target, body: '{}', now: context.now() };
  const { jwt } = await callToken(facts, signingKey);
  const client = httpClient({ ...controlServer(context, origin), token: jwt });
  const reply = await client.send('POST', target, { body: {} });
  if (reply.status === 204) return 'left';
  if (reply.status === 401) return 'had_ended';
  throw errorOfReply(CONTROL_NAME, reply);
}

function controlServer({ fetch }: Pick<CliContext, 'fetch'>, origin: string) {
  return { origin, name: CONTROL_NAME, fetch, startFix: REACH_FIX };
}

function readReply(reply: RawReply): JoinReply {
  const parsed = joinReply.safeParse(parseJson(reply.text));
  if (parsed.success) return parsed.data;
  throw new CliError(EXIT.failed, `${CONTROL_NAME} answered in a format that this svc does not know`);
}

const refusal = z.object({
  error: z.object({
    code: z.literal('join_refused'),
    details: z.object({ reason: z.enum(JOIN_REFUSALS), claims: z.array(z.string()).optional() }),
  }),
});

function refusalOf(reply: RawReply, wanted: Join): CliError {
  const known = errorOfReply(CONTROL_NAME, reply);
  const parsed = refusal.safeParse(parseJson(reply.text));
  const fixes = parsed.success ? refusalFixes(parsed.data.error.details, wanted) : [];
  return new CliError(EXIT.failed, known.message, [...known.fixes, ...fixes], known.apiCode);
}

/** The most claims of a token that are shown. */
const MOST_SHOWN = 20;
const MOST_CHARACTERS = 300;

/** What the job's own token says about what was refused, and what to do. */
function refusalFixes(
  { reason, claims = [] }: { readonly reason: JoinRefusal; readonly claims?: readonly string[] | undefined },
  { token, audience, serviceAccount }: Pick<Join, 'token' | 'audience' | 'serviceAccount'>,
): readonly string[] {
  const said = readClaims(token);
  const line = (claim: string): string => `The token says: ${shownClaim(claim)} = ${shownClaim(claimAt(said, claim))}`;
  if (reason === 'audience') {
    const asked = `Asked for was ${toPrintable(audience)}; choose another with --audience.`;
    return [
      line('aud'),
      `Wanted is the audience of the service account, by default the URL of the control plane. ${asked}`,
    ];
  }
  if (reason === 'issuer') return [line('iss')];
  if (reason === 'claims') {
    const change = `If this job should join, an admin changes the rules: svc api PUT /v1/service-accounts/${serviceAccount}`;
    return [...claims.slice(0, MOST_SHOWN).map(line), change];
  }
  if (reason === 'unknown_service_account') return ['Admins list them: svc service-account list'];
  if (reason === 'expired' || reason === 'used_before') {
    return ['Join once for each token. A token in a file or a variable is as old as the job.'];
  }
  // The message says it all.
  return [];
}

/** The claims of a token, unverified: they are only shown. */
function readClaims(token: string): unknown {
  return parseJson(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
}

/** A claim by its name or its path, such as `kubernetes.io/namespace`. */
function claimAt(claims: unknown, path: string): string {
  const direct = propertyOf(claims, path);
  const value = direct === undefined ? path.split('/').reduce(propertyOf, claims) : direct;
  return value === undefined ? '(nothing)' : JSON.stringify(value);
}

function propertyOf(value: unknown, name: string): unknown {
  const has = typeof value === 'object' && value !== null && Object.hasOwn(value, name);
  return has ? Reflect.get(value, name) : undefined;
}

function shownClaim(text: string): string {
  return toPrintable(text.slice(0, MOST_CHARACTERS));
}

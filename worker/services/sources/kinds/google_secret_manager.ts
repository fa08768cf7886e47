import { z } from 'zod';
import type { SourceOf } from '../../../../shared/wire/sources/source_table.ts';
import {
  type Advice,
  anotherSecret,
  callManager,
  keptPlan,
  keptValue,
  notAnAnswer,
  withoutSlash,
} from '../kept_value.ts';
import type { MintingSource } from '../source_port.ts';
import { keyProblem } from '../token_source.ts';
import { GOOGLE_SERVICE_ACCOUNT } from './google_service_account.ts';

type Source = SourceOf<'google_secret_manager'>;

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';
const answer = z.object({
  name: z.string(),
  payload: z.object({ data: z.string().regex(/^[A-Za-z0-9+/]*={0,2}$/) }),
});
const refusal = z.object({ error: z.object({ status: z.string() }) });

/** A version of a secret of Google Secret Manager, by `versions.access` of its REST API (v1), as a service account. */
export const GOOGLE_SECRET_MANAGER: MintingSource<'google_secret_manager'> = {
  describe: (source) => whereOf(source),
  plan: (source) => keptPlan(source.client_email, source.secret_resource, urlOf(source)),
  checkKey: (_source, key) => keyProblem(key, 'RS256'),
  async mint({ source, key, outbound, nowMs }) {
    const { client_email, token_url, key_id, secret_resource: resource, version, field } = source;
    const account = { kind: 'google_service_account' as const, client_email, token_url, key_id, scopes: [SCOPE] };
    const token = await GOOGLE_SERVICE_ACCOUNT.mint({ source: account, key, outbound, nowMs });
    if (!token.ok) return token;
    const url = urlOf(source);
    const headers = { authorization: `Bearer ${token.value.value.reveal()}` };
    const called = await callManager({ outbound, url, headers, why: WHY, codeOf });
    if (!called.ok) return called;
    const { data } = answer.safeParse(called.value);
    if (data === undefined) return notAnAnswer(url);
    if (!isAsked(data.name, resource, version)) return anotherSecret(url);
    return keptValue(textOf(data.payload.data), { where: whereOf(source), nowMs, field });
  },
};

function codeOf(reply: unknown): string | null {
  return refusal.safeParse(reply).data?.error.status ?? null;
}

/** The answer has the number of the project in place of its id, and the number of the latest version. */
function isAsked(name: string, resource: string, version: number | undefined): boolean {
  const [own, theirs] = [resource, name].map((each) => each.replace(/^projects\/[^/]+\//, ''));
  const number = theirs?.startsWith(`${own}/versions/`) === true ? theirs.slice(`${own}/versions/`.length) : '';
  return version === undefined ? /^\d+$/.test(number) : number === String(version);
}

/** Null if it is no text: nothing of a binary value can be sent. */
function textOf(data: string): string | null {
  try {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

function urlOf({ secret_manager_url: url, secret_resource: resource, version }: Source): string {
  return `${withoutSlash(url)}/v1/${resource}/versions/${version ?? 'latest'}:access`;
}

function whereOf({ secret_resource: resource, version }: Source): string {
  return `${resource}, ${version === undefined ? 'the latest version' : `version ${version}`}`;
}

const WHY: Advice = {
  PERMISSION_DENIED: 'give the service account roles/secretmanager.secretAccessor on this secret, and enable the API',
  NOT_FOUND: 'there is no such secret or version: compare secret_resource, version and secret_manager_url',
  FAILED_PRECONDITION: 'the version is disabled or destroyed: enable it, or name another one',
  INVALID_ARGUMENT: 'compare secret_resource; a regional secret needs its own secret_manager_url',
  UNAUTHENTICATED: 'it does not accept the token: compare token_url, and the clock of the control plane',
  RESOURCE_EXHAUSTED: 'a quota is used up: try again later',
  UNAVAILABLE: 'try again',
  INTERNAL: 'try again',
};

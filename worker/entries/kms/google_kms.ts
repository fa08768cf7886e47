import { z } from 'zod';
import { Secret } from '../../../shared/model/secret.ts';
import { toBase64 } from '../../kernel/encoding.ts';
import { GOOGLE_SERVICE_ACCOUNT } from '../../services/sources/kinds/google_service_account.ts';
import { callKms, type KmsOptions, type KmsReply, refusedBy, unavailable } from './call_kms.ts';
import { type Kms, KMS_PURPOSE, type KmsCall } from './kms.ts';
import { readGoogleKey } from './kms_credentials.ts';

const ENDPOINT = 'https://cloudkms.googleapis.com';
const SCOPE = 'https://www.googleapis.com/auth/cloudkms';
const base64 = z.string().regex(/^[A-Za-z0-9+/]{1,8192}={0,2}$/);
const encrypted = z.object({ name: z.string(), ciphertext: base64 });
const decrypted = z.object({ plaintext: base64 });
const failure = z.object({ error: z.object({ status: z.string() }) });

/** Google Cloud KMS, `encrypt` and `decrypt` of its REST API (v1). The file that the key seals shows whether an answer is right. */
export function googleKms(options: KmsOptions): Kms {
  return {
    async wrap(call, plain) {
      const reply = await post(options, call, 'encrypt', { plaintext: plain.reveal() });
      const { name, ciphertext } = answerOf(encrypted, reply);
      if (name === call.key.name || name.startsWith(`${call.key.name}/cryptoKeyVersions/`)) return ciphertext;
      throw unavailable(`${reply.host} used another key than ${call.key.name}`);
    },
    async unwrap(call, wrapped) {
      const reply = await post(options, call, 'decrypt', { ciphertext: wrapped });
      return new Secret(answerOf(decrypted, reply).plaintext);
    },
  };
}

async function post(options: KmsOptions, { key, file }: KmsCall, action: string, fields: object): Promise<KmsReply> {
  const token = await accessToken(options);
  const boundTo = toBase64(new TextEncoder().encode(`${KMS_PURPOSE}\0${file}`));
  return callKms(options.outbound, {
    method: 'POST',
    url: `${(options.url ?? ENDPOINT).replace(/\/$/, '')}/v1/${key.name}:${action}`,
    headers: {
      authorization: `Bearer ${token.reveal()}`,
      'content-type': 'application/json',
      accept: 'application/json',
      'user-agent': 'svc',
    },
    body: new TextEncoder().encode(JSON.stringify({ ...fields, additionalAuthenticatedData: boundTo })),
  });
}

async function accessToken({ credentialsFile, outbound, now }: KmsOptions): Promise<Secret> {
  const { client_email, private_key: key, private_key_id: keyId, token_uri } = readGoogleKey(credentialsFile);
  const kind = 'google_service_account';
  const source = { client_email, scopes: [SCOPE], token_url: token_uri, key_id: keyId };
  const minted = await GOOGLE_SERVICE_ACCOUNT.mint({ source: { kind, ...source }, key, outbound, nowMs: now() });
  if (minted.ok) return minted.value.value;
  throw unavailable(minted.error.message);
}

function answerOf<T>(schema: z.ZodType<T>, reply: KmsReply): T {
  if (reply.status !== 200) {
    const { data } = failure.safeParse(reply.body);
    throw refusedBy(reply, data?.error.status ?? '', WHY);
  }
  const answer = schema.safeParse(reply.body);
  if (answer.success) return answer.data;
  throw unavailable(`the answer of ${reply.host} is not that of a KMS`);
}

/** By the status of an error (google.rpc.Code). */
const WHY: Readonly<Record<string, string>> = {
  PERMISSION_DENIED:
    'give the service account roles/cloudkms.cryptoKeyEncrypterDecrypter on this key, and enable the API',
  NOT_FOUND: 'there is no such key: compare its project, location, key ring and name',
  INVALID_ARGUMENT: 'vault.key was changed, or wrapped by another key or for another file: restore it from a copy',
  FAILED_PRECONDITION:
    'the key has no primary version, or the version that wrapped this is disabled or destroyed: enable it',
  UNAUTHENTICATED: 'it does not accept the token of the service account: compare the clock',
  RESOURCE_EXHAUSTED: 'a quota is used up: try again later',
  UNAVAILABLE: 'try again',
  DEADLINE_EXCEEDED: 'try again',
  INTERNAL: 'try again',
};

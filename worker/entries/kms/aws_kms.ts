import { z } from 'zod';
import { Secret } from '../../../shared/model/secret.ts';
import { signAwsCall } from '../../kernel/sign_aws_call.ts';
import { callKms, type KmsOptions, type KmsReply, refusedBy, unavailable } from './call_kms.ts';
import { type Kms, KMS_PURPOSE, type KmsCall } from './kms.ts';
import { readAwsKeys } from './kms_credentials.ts';

const CONTENT_TYPE = 'application/x-amz-json-1.1';
const base64 = z.string().regex(/^[A-Za-z0-9+/]{1,8192}={0,2}$/);
const encrypted = z.object({ CiphertextBlob: base64, KeyId: z.string() });
const decrypted = z.object({ Plaintext: base64, KeyId: z.string() });
/** The code of an error may have the name of its namespace before it. */
const failure = z.object({ __type: z.string() }).transform((body) => body['__type'].split('#').at(-1) ?? '');

/** AWS Key Management Service, `Encrypt` and `Decrypt` (API version 2014-11-01). Which key it used is in each answer. */
export function awsKms(options: KmsOptions): Kms {
  return {
    async wrap(call, plain) {
      const reply = await post(options, call, 'Encrypt', { Plaintext: plain.reveal() });
      return answerOf(encrypted, call, reply).CiphertextBlob;
    },
    async unwrap(call, wrapped) {
      const reply = await post(options, call, 'Decrypt', { CiphertextBlob: wrapped });
      return new Secret(answerOf(decrypted, call, reply).Plaintext);
    },
  };
}

/** The encryption context binds the wrapped key to its use and its file; it is in the trail of AWS, and not secret. */
async function post(
  { outbound, url, credentialsFile, now }: KmsOptions,
  { key, file }: KmsCall,
  action: 'Encrypt' | 'Decrypt',
  fields: object,
): Promise<KmsReply> {
  if (key.cloud !== 'aws') throw new Error(`${key.name} is no key of AWS`);
  const {
    AccessKeyId: accessKeyId,
    SecretAccessKey: secretKey,
    SessionToken: sessionToken,
  } = readAwsKeys(credentialsFile);
  const endpoint = new URL(url ?? `https://kms.${key.region}.${key.domain}/`);
  const context = { purpose: KMS_PURPOSE, file };
  const body = new TextEncoder().encode(JSON.stringify({ KeyId: key.name, EncryptionContext: context, ...fields }));
  const headers = { 'x-amz-target': `TrentService.${action}` };
  const signed = await signAwsCall({
    method: 'POST',
    url: endpoint,
    contentType: CONTENT_TYPE,
    body,
    accessKeyId,
    key: secretKey,
    ...(sessionToken !== undefined && { sessionToken }),
    headers,
    region: key.region,
    service: 'kms',
    nowMs: now(),
  });
  if (!signed.ok) throw unavailable('SVC_KMS_CREDENTIALS_FILE has a key with a character that no key has');
  return callKms(outbound, {
    method: 'POST',
    url: endpoint.href,
    headers: {
      ...headers,
      ...signed.value,
      'content-type': CONTENT_TYPE,
      accept: 'application/json',
      'user-agent': 'svc',
    },
    body,
  });
}

function answerOf<T extends { readonly KeyId: string }>(schema: z.ZodType<T>, { key }: KmsCall, reply: KmsReply): T {
  if (reply.status !== 200) {
    const { data } = failure.safeParse(reply.body);
    throw refusedBy(reply, data ?? '', WHY);
  }
  const answer = schema.safeParse(reply.body);
  if (!answer.success) throw unavailable(`the answer of ${reply.host} is not that of a KMS`);
  if (answer.data.KeyId !== key.name) throw unavailable(`${reply.host} used another key than ${key.name}`);
  return answer.data;
}

const WHY: Readonly<Record<string, string>> = {
  AccessDeniedException: 'allow kms:Encrypt and kms:Decrypt on this key, in its policy or in that of the caller',
  NotFoundException: 'there is no such key in this account and region',
  DisabledException: 'enable the key',
  KMSInvalidStateException: 'the key is disabled, waits for its deletion, or has no key material: restore it',
  KeyUnavailableException: 'the key cannot be used at present: try again',
  InvalidKeyUsageException: 'the key is not for encryption: use a symmetric key with ENCRYPT_DECRYPT',
  IncorrectKeyException: 'the master key was wrapped by another key',
  InvalidCiphertextException: 'vault.key was changed, or wrapped for another file: restore it from a copy',
  DependencyTimeoutException: 'try again',
  KMSInternalException: 'try again',
  ThrottlingException: 'try again later',
  UnrecognizedClientException:
    'there is no such access key, or its session token is wrong: replace the credentials file',
  InvalidSignatureException: 'the secret access key is not that of the access key id, or the clock is wrong',
  ExpiredTokenException: 'the session token has ended: replace the credentials file',
  IncompleteSignatureException: 'the credentials file is not right',
};

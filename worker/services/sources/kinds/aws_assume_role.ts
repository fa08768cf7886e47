import type { HostBinding } from '../../../../shared/model/host_binding.ts';
import { ok, err, type Result } from '../../../../shared/model/result.ts';
import { headerField } from '../../../../shared/net/http/http1_head.ts';
import type { SourceOf } from '../../../../shared/wire/secret_sources.ts';
import { callSts, describeRole, members, planRole, type UnsignedCall } from '../aws_sts.ts';
import type { Minting, MintFailure, MintingSource } from '../source_port.ts';

/** The key set of a session of a role that a caller with an access key of its own assumes. */
export const AWS_ASSUME_ROLE: MintingSource<'aws_assume_role'> = {
  describe: (source) => describeRole(source),
  plan: (source) => planRole(source),
  checkKey: async () => null,
  async mint(minting) {
    const { source, outbound, nowMs } = minting;
    const { external_id: externalId, tags = {}, transitive_tag_keys: transitive = [] } = source;
    const parameters = {
      ...(externalId !== undefined && { ExternalId: externalId }),
      ...members('Tags', Object.keys(tags), 'Key'),
      ...members('Tags', Object.values(tags), 'Value'),
      ...members('TransitiveTagKeys', transitive),
    };
    const sign = (call: UnsignedCall) => signCall(minting, call);
    return callSts({ source, action: 'AssumeRole', parameters, sign, outbound, nowMs });
  },
};

/** By the signer of the proxy, with the caller's key. Loaded when it is needed: it takes longer than the rest of a start. */
async function signCall(
  { source, key, nowMs }: Minting<'aws_assume_role'>,
  { url, contentType, body }: UnsignedCall,
): Promise<Result<Readonly<Record<string, string>>, MintFailure>> {
  const { inject } = await import('../../../../shared/inject/inject.ts');
  const { WebHash } = await import('../../../../shared/inject/web_hash.ts');
  const written = await inject({
    binding: signingOf(source),
    request: {
      method: 'POST',
      target: url.pathname,
      host: url.host,
      fields: [headerField('host', url.host), headerField('content-type', contentType)],
    },
    credential: key,
    body: { kind: 'bytes', chunks: [body] },
    now: new Date(nowMs),
    hash: WebHash,
  });
  // What it refuses of a request of our own is the key.
  if (!written.ok)
    return err({ reason: 'invalid_key', message: 'the secret access key has a character that none has' });
  const added = written.value.fields.filter(({ name }) => name === 'authorization' || name.startsWith('x-amz-'));
  return ok(
    Object.fromEntries(added.map((field) => [field.name, field.line.slice(field.line.indexOf(':') + 1).trim()])),
  );
}

function signingOf({
  access_key_id: accessKeyId,
  region,
}: SourceOf<'aws_assume_role'>): Pick<HostBinding, 'injection' | 'emit'> {
  return {
    injection: { scheme: 'sigv4-resign', accessKeyId, region, service: 'sts' },
    emit: { mechanism: 'inject' },
  };
}

import { awsKeyCheck } from '../aws_key_check.ts';
import { err, type Result } from '../../../../shared/model/result.ts';
import { signAwsCall } from '../../../kernel/sign_aws_call.ts';
import { callSts, describeRole, members, planRole, type UnsignedCall } from '../aws_sts.ts';
import type { Minting, MintFailure, MintingSource } from '../source_port.ts';

/** The key set of a session of a role that a caller with an access key of its own assumes. */
export const AWS_ASSUME_ROLE: MintingSource<'aws_assume_role'> = {
  describe: (source) => describeRole(source),
  plan: (source) => planRole(source),
  checkKey: async (_source, key) => awsKeyCheck(key),
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

/** By the signer of the proxy, with the caller's key. */
async function signCall(
  { source, key, nowMs }: Minting<'aws_assume_role'>,
  call: UnsignedCall,
): Promise<Result<Readonly<Record<string, string>>, MintFailure>> {
  const { access_key_id: accessKeyId, region } = source;
  const signed = await signAwsCall({ ...call, method: 'POST', accessKeyId, key, region, service: 'sts', nowMs });
  if (signed.ok) return signed;
  return err({ reason: 'invalid_key', message: 'the secret access key has a character that none has' });
}

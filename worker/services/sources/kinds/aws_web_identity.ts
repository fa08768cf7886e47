import { callSts, describeRole, planRole } from '../aws_sts.ts';
import { signAssertion } from '../sign_jwt.ts';
import type { MintingSource } from '../source_port.ts';
import { keyProblem } from '../token_source.ts';

/** The key set of a session of a role, for an identity that the source signs as an OpenID provider which IAM knows. */
export const AWS_WEB_IDENTITY: MintingSource<'aws_web_identity'> = {
  describe: (source) => `${describeRole(source)}, for ${source.subject} of ${new URL(source.issuer).host}`,
  plan: (source) => planRole(source),
  checkKey: async ({ algorithm }, key) => keyProblem(key, algorithm),
  async mint({ source, key, outbound, nowMs }) {
    const { issuer: iss, subject: sub, audience: aud, algorithm, key_id: keyId } = source;
    const signed = await signAssertion(key, { algorithm, keyId, claims: { iss, sub, aud } }, nowMs);
    if (!signed.ok) return signed;
    const parameters = { WebIdentityToken: signed.value.reveal() };
    return callSts({ source, action: 'AssumeRoleWithWebIdentity', parameters, outbound, nowMs });
  },
};

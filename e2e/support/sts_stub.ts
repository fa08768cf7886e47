import { randomBytes, verify, type KeyObject } from 'node:crypto';
import { type SignedRequest, verifySigV4 } from './sigv4_verifier.ts';

/** The session of a key set that the stub issued. */
interface Issued {
  readonly secret: string;
  readonly token: string;
}

interface StsStubOptions {
  /** The long-lived keys of callers, by access key id. */
  readonly callers: ReadonlyMap<string, string>;
  /** The public key of the OpenID provider that the role trusts. */
  readonly trusted?: KeyObject;
  readonly externalId?: string;
  readonly now: () => number;
}

/**
 * A stub of AWS's Security Token Service, written from its API reference (version 2011-06-15): it is not AWS. It verifies the
 * signature of a call, or the JWT of a web identity, refuses as the reference says, and issues a new key set each time.
 */
export class StsStub {
  readonly #options: StsStubOptions;
  /** The parameters of each call. */
  readonly asked: Readonly<Record<string, string>>[] = [];
  /** The key sets that were issued, by access key id. */
  readonly issued = new Map<string, Issued>();
  /** Changes of the next answers, by element; null: without the element. */
  altered: Readonly<Record<string, string | null>> = {};

  constructor(options: StsStubOptions) {
    this.#options = options;
  }

  answer(request: SignedRequest): { readonly status: number; readonly body: string } {
    const asked = Object.fromEntries(new URLSearchParams(request.body.toString()));
    this.asked.push(asked);
    const isSigned = asked['Action'] === 'AssumeRole';
    const problem = isSigned ? this.#callerProblem(request, asked) : this.#identityProblem(asked['WebIdentityToken']);
    if (problem !== null) return refuse(...problem);
    return { status: 200, body: this.#issue(asked) };
  }

  #callerProblem(request: SignedRequest, asked: Readonly<Record<string, string>>): [number, string] | null {
    const verdict = verifySigV4(request, this.#options.callers, this.#options.now());
    if (!verdict.ok) return [403, verdict.code === 'InvalidAccessKeyId' ? 'InvalidClientTokenId' : verdict.code];
    if (verdict.service !== 'sts') return [403, 'SignatureDoesNotMatch'];
    return asked['ExternalId'] === this.#options.externalId ? null : [403, 'AccessDenied'];
  }

  #identityProblem(jwt = ''): [number, string] | null {
    const { trusted, now } = this.#options;
    const [header = '', claims = '', signature = ''] = jwt.split('.');
    const bytes = Buffer.from(`${header}.${claims}`);
    const isSigned = trusted !== undefined && verify('sha256', bytes, trusted, Buffer.from(signature, 'base64url'));
    if (!isSigned) return [400, 'InvalidIdentityToken'];
    const { aud, exp } = JSON.parse(Buffer.from(claims, 'base64url').toString());
    if (aud !== 'sts.amazonaws.com') return [400, 'InvalidIdentityToken'];
    return exp * 1000 > now() ? null : [400, 'ExpiredTokenException'];
  }

  #issue(asked: Readonly<Record<string, string>>): string {
    const id = `ASIA${randomBytes(8).toString('hex').toUpperCase()}`;
    const issued = { secret: randomBytes(30).toString('base64'), token: randomBytes(150).toString('base64') };
    this.issued.set(id, issued);
    const { Action: action = '', RoleArn: role = '', RoleSessionName: name = '', DurationSeconds: seconds } = asked;
    const [, , , , account = '', path = ''] = role.split(':');
    const isNarrowed = Object.keys(asked).some((key) => /^(?:Policy|PolicyArns|Tags)\b/.test(key));
    const texts: Record<string, string | null> = {
      Arn: `arn:aws:sts::${account}:assumed-role/${path.split('/').at(-1)}/${name}`,
      AccessKeyId: id,
      SecretAccessKey: issued.secret,
      SessionToken: issued.token,
      Expiration: new Date(this.#options.now() + Number(seconds) * 1000).toISOString().replace(/\.\d+/, ''),
      PackedPolicySize: isNarrowed ? '6' : null,
      ...this.altered,
    };
    const element = (tag: string) => (texts[tag] === null ? '' : `<${tag}>${texts[tag]}</${tag}>`);
    return `<${action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <${action}Result>
    <AssumedRoleUser><AssumedRoleId>AROA123:${name}</AssumedRoleId>${element('Arn')}</AssumedRoleUser>
    <Credentials>
      ${['AccessKeyId', 'SecretAccessKey', 'SessionToken', 'Expiration'].map(element).join('\n      ')}
    </Credentials>
    ${element('PackedPolicySize')}
  </${action}Result>
  <ResponseMetadata><RequestId>c6104cbe-af31-11e0-8154-cbc7ccf896c7</RequestId></ResponseMetadata>
</${action}Response>`;
  }
}

function refuse(status: number, code: string): { readonly status: number; readonly body: string } {
  return {
    status,
    body: `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <Error><Type>Sender</Type><Code>${code}</Code><Message>A text with a secret of the call in it</Message></Error>
  <RequestId>c6104cbe-af31-11e0-8154-cbc7ccf896c7</RequestId>
</ErrorResponse>`,
  };
}

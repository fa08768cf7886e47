import { createCipheriv, createDecipheriv, randomBytes, verify, type KeyObject } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { listen } from './tls_upstream.ts';
import { verifySigV4 } from './sigv4_verifier.ts';

interface KmsStubOptions {
  /** The names of the keys: ARNs of AWS, resource names of Google. */
  readonly keys: readonly string[];
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Present: each call of AWS needs it. */
  readonly sessionToken?: string;
  /** Of the service account of Google. */
  readonly serviceAccount: KeyObject;
}

interface Answer {
  readonly status: number;
  readonly body: object;
}

/**
 * A stub of AWS KMS and of Google Cloud KMS with its token endpoint, on loopback, written from their API references: it is neither.
 * It verifies signatures and tokens, wraps keys with keys of its own, and refuses as the references say.
 */
export class KmsStub {
  readonly #options: KmsStubOptions;
  readonly #keys: ReadonlyMap<string, Buffer>;
  readonly #tokens = new Set<string>();
  /** The actions of the calls that were answered. */
  readonly asked: string[] = [];
  /** In place of each next answer of a KMS. */
  instead: Answer | null = null;
  /** Changes each next answer of a KMS that is not a refusal. */
  altered: object = {};

  constructor(options: KmsStubOptions) {
    this.#options = options;
    this.#keys = new Map(options.keys.map((name) => [name, randomBytes(32)]));
  }

  async start(): Promise<{ readonly url: string; readonly server: Server }> {
    const server = createServer((request, response) => void this.#serve(request, response));
    return { url: `http://127.0.0.1:${await listen(server)}`, server };
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { status, body } = this.#answer(request, await readBody(request));
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  }

  #answer(request: IncomingMessage, body: Buffer): Answer {
    if (request.url === '/token') return this.#token(new URLSearchParams(body.toString()).get('assertion') ?? '');
    if (this.instead !== null) return this.instead;
    const asked = JSON.parse(body.toString());
    const target = request.headers['x-amz-target'];
    const answer = typeof target === 'string' ? this.#aws(request, body, asked) : this.#google(request, asked);
    return answer.status === 200 ? { ...answer, body: { ...answer.body, ...this.altered } } : answer;
  }

  #aws(request: IncomingMessage, body: Buffer, asked: Record<string, unknown>): Answer {
    const { accessKeyId, secretAccessKey, sessionToken } = this.#options;
    const headers = (name: string) => [request.headers[name] ?? []].flat();
    const signed = { method: request.method ?? '', target: request.url ?? '', headers, body };
    const verdict = verifySigV4(signed, new Map([[accessKeyId, secretAccessKey]]), Date.now());
    if (!verdict.ok) {
      return awsError(
        verdict.code === 'InvalidAccessKeyId' ? 'UnrecognizedClientException' : 'InvalidSignatureException',
      );
    }
    const isCovered = /SignedHeaders=[^,]*x-amz-target/.test(headers('authorization')[0] ?? '');
    if (!isCovered || verdict.service !== 'kms') return awsError('InvalidSignatureException');
    if (headers('x-amz-security-token')[0] !== sessionToken) return awsError('UnrecognizedClientException');
    const name = String(asked['KeyId']);
    const key = this.#keys.get(name);
    if (key === undefined) return awsError('NotFoundException');
    const context = JSON.stringify(asked['EncryptionContext']);
    this.asked.push(String(request.headers['x-amz-target']));
    if (request.headers['x-amz-target'] === 'TrentService.Encrypt') {
      const CiphertextBlob = seal(key, String(asked['Plaintext']), context);
      return { status: 200, body: { CiphertextBlob, KeyId: name, EncryptionAlgorithm: 'SYMMETRIC_DEFAULT' } };
    }
    const Plaintext = open(key, String(asked['CiphertextBlob']), context);
    if (Plaintext === null) return awsError('InvalidCiphertextException');
    return { status: 200, body: { Plaintext, KeyId: name, EncryptionAlgorithm: 'SYMMETRIC_DEFAULT' } };
  }

  #google(request: IncomingMessage, asked: Record<string, unknown>): Answer {
    const [, name = '', action = ''] = /^\/v1\/(.*):(encrypt|decrypt)$/.exec(request.url ?? '') ?? [];
    if (!this.#tokens.has(request.headers.authorization ?? '')) return googleError(401, 'UNAUTHENTICATED');
    const key = this.#keys.get(name);
    if (key === undefined) return googleError(404, 'NOT_FOUND');
    const context = String(asked['additionalAuthenticatedData']);
    this.asked.push(action);
    if (action === 'encrypt') {
      const ciphertext = seal(key, String(asked['plaintext']), context);
      return { status: 200, body: { name: `${name}/cryptoKeyVersions/1`, ciphertext } };
    }
    const plaintext = open(key, String(asked['ciphertext']), context);
    return plaintext === null ? googleError(400, 'INVALID_ARGUMENT') : { status: 200, body: { plaintext } };
  }

  #token(assertion: string): Answer {
    const [header = '', claims = '', signature = ''] = assertion.split('.');
    const bytes = Buffer.from(`${header}.${claims}`);
    const isSigned = verify('sha256', bytes, this.#options.serviceAccount, Buffer.from(signature, 'base64url'));
    const { scope } = JSON.parse(Buffer.from(claims, 'base64url').toString() || '{}');
    if (!isSigned || scope !== 'https://www.googleapis.com/auth/cloudkms') {
      return { status: 400, body: { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' } };
    }
    const token = randomBytes(16).toString('hex');
    this.#tokens.add(`Bearer ${token}`);
    return { status: 200, body: { access_token: token, token_type: 'Bearer', expires_in: 3599 } };
  }
}

function awsError(code: string): Answer {
  return { status: 400, body: { __type: code, message: 'A text with a secret of the call in it' } };
}

function googleError(code: number, status: string): Answer {
  return { status: code, body: { error: { code, status, message: 'A text with a secret of the call in it' } } };
}

function seal(key: Buffer, plain: string, context: string): string {
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(context));
  return Buffer.concat([iv, cipher.update(plain, 'base64'), cipher.final(), cipher.getAuthTag()]).toString('base64');
}

function open(key: Buffer, sealed: string, context: string): string | null {
  const bytes = Buffer.from(sealed, 'base64');
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12), { authTagLength: 16 });
    decipher.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(-16));
    return Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]).toString('base64');
  } catch {
    return null;
  }
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

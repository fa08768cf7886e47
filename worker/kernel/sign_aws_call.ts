import type { Secret } from '../../shared/model/secret.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { headerField } from '../../shared/net/http/http1_head.ts';

/** A call of an AWS service, or of one that checks the same signatures. */
export interface UnsignedAwsCall {
  readonly method: string;
  readonly url: URL;
  readonly contentType: string;
  readonly body: Uint8Array<ArrayBuffer>;
  readonly accessKeyId: string;
  readonly key: Secret;
  /** Of temporary credentials. */
  readonly sessionToken?: Secret;
  /** Other headers that are signed; names are `x-amz-...`. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly region: string;
  readonly service: string;
  readonly nowMs: number;
}

/**
 * The headers that sign a call of our own, by the signer of the proxy: Signature Version 4 over the whole body. It is loaded when
 * it is needed, because that takes longer than the rest of a start. What it refuses is the key: it has a character that none has.
 */
export async function signAwsCall(call: UnsignedAwsCall): Promise<Result<Readonly<Record<string, string>>, 'bad_key'>> {
  const { inject } = await import('../../shared/inject/inject.ts');
  const { WebHash } = await import('../../shared/inject/web_hash.ts');
  const { method, url, contentType, body, accessKeyId, region, service, headers = {}, sessionToken } = call;
  const written = await inject({
    binding: {
      injection: { scheme: 'sigv4-resign', accessKeyId, region, service },
      emit: { mechanism: 'inject' },
    },
    request: {
      method,
      target: url.pathname,
      host: url.host,
      fields: Object.entries({ host: url.host, 'content-type': contentType, ...headers }).map(([name, value]) =>
        headerField(name, value),
      ),
    },
    credential: call.key,
    ...(sessionToken !== undefined && { sessionToken }),
    body: { kind: 'bytes', chunks: [body] },
    now: new Date(call.nowMs),
    hash: WebHash,
  });
  if (!written.ok) return err('bad_key');
  const added = written.value.fields.filter(({ name }) => name === 'authorization' || name.startsWith('x-amz-'));
  return ok(
    Object.fromEntries(added.map((field) => [field.name, field.line.slice(field.line.indexOf(':') + 1).trim()])),
  );
}

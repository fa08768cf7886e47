import { Secret } from '../../../shared/model/secret.ts';
import { signAwsCall } from '../../kernel/sign_aws_call.ts';
import type { Batch, HttpSinkKind } from './sink_kind.ts';
import type { SinkTarget } from './sink_target.ts';

const CONTENT_TYPE = 'application/x-ndjson';
/** As many digits as positions may have, so that names sort as numbers do. */
const DIGITS = 16;

/**
 * One object of JSON lines for each batch, in a bucket with the API of S3. A batch that is sent again has the same name and the
 * same bytes, so it replaces itself: every event is in the bucket once.
 */
export const s3Sink: HttpSinkKind = {
  isSigned: false,
  isAlert: false,
  judgesNothing: true,
  async write(target, batch) {
    const url = new URL(target.url);
    url.pathname = `${url.pathname.replace(/\/+$/, '')}/${objectName(batch)}`;
    const body = new TextEncoder().encode(batch.events.map((event) => `${JSON.stringify(event)}\n`).join(''));
    const headers = { ...(await signatureOf(target, url, body, batch.nowMs)), 'content-type': CONTENT_TYPE };
    return { method: 'PUT', url: url.href, headers, body };
  },
};

/** By day, and within it in the order of arrival. */
function objectName({ events, after }: Batch): string {
  const [first] = events;
  const [day = ''] = (first?.received_at ?? '').split('T');
  return `${day.replaceAll('-', '/')}/${String(after).padStart(DIGITS, '0')}-${first?.id ?? ''}-${events.length}.jsonl`;
}

/** Without a usable key the call is unsigned, and the store refuses it: the sink then shows its status. */
async function signatureOf(
  { aws }: SinkTarget,
  url: URL,
  body: Uint8Array<ArrayBuffer>,
  nowMs: number,
): Promise<Readonly<Record<string, string>>> {
  if (aws === undefined) return {};
  const { region, accessKeyId } = aws;
  const key = new Secret(aws.secretAccessKey);
  const call = { method: 'PUT', url, contentType: CONTENT_TYPE, body, accessKeyId, key, region, service: 's3', nowMs };
  const signed = await signAwsCall(call);
  return signed.ok ? signed.value : {};
}

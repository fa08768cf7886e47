import { parseJson } from '../../shared/model/json.ts';
import { errorBody } from '../../shared/wire/errors.ts';
import type { RawReply } from '../terminal/http_client.ts';

/** The JSON of a reply; undefined if it is not JSON. */
export function replyJson(reply: RawReply): unknown {
  return parseJson(reply.text);
}

/** The code of a refusal; null if the reply is not one. */
export function refusalCode(reply: RawReply): string | null {
  const parsed = errorBody.safeParse(replyJson(reply));
  return parsed.success ? parsed.data.error.code : null;
}

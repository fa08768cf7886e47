import { type LaunchValues, withReferences } from '../../shared/mcp/references.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { CurrentMask, type FilledBearer } from './current_mask.ts';
import type { BearerToken, ReleasedValues } from '../gateway_ports.ts';

/** A server's values with credentials inserted, and the mask for its output. */
export interface FilledLaunch {
  readonly values: LaunchValues;
  readonly mask: CurrentMask;
  readonly bearer: FilledBearer | null;
}

/** Replaces a server's references with the released values. The error is the rest of a sentence and contains no value. */
export function fillLaunch(server: McpServer, released: ReleasedValues): Result<FilledLaunch, string> {
  const texts = new Map(Array.from(released.values, ([path, secret]) => [path, secret.reveal()] as const));
  const values = withReferences(server, texts);
  if (!values.ok) return err(values.error);
  const bearer = released.bearer === null ? null : fillBearer(released.bearer);
  return ok({ values: values.value, mask: new CurrentMask([...texts.values()], bearer), bearer });
}

/** The header value for an access token. */
export function fillBearer({ token, expiresAt }: BearerToken): FilledBearer {
  return { text: token.reveal(), expiresAt };
}

import type { ConnectorOperation } from '../../shared/connect/connector_index.ts';
import { requestFingerprint, requestScope } from '../../shared/connect/request_fingerprint.ts';
import { requestSummary } from '../../shared/connect/request_summary.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import { splitTarget } from '../../shared/net/http/target.ts';
import { connectorBinding } from './connector_binding.ts';
import { heldContent } from './held_content.ts';
import { type MaterialCache, resolveMaterial } from './material.ts';
import type { ApprovalSource, CredentialSource, NotApproved } from '../ports.ts';

/** A request to an operation, in the form it will be sent. */
interface AskedRequest {
  readonly method: string;
  readonly host: string;
  /** The path with its query. */
  readonly target: string;
  /** Empty if there is none. */
  readonly contentType: string;
  readonly body: readonly Uint8Array[];
  readonly sessionId: string | null;
}

interface AskPorts {
  readonly approvals: ApprovalSource;
  readonly credentials: CredentialSource;
  readonly materials: MaterialCache;
}

/**
 * Asks for approval if the operation needs one; returns null at once if not. A person is asked only if there is a credential
 * to send the request with.
 */
export async function askApproval(
  match: ConnectorOperation,
  request: AskedRequest,
  { approvals, credentials, materials }: AskPorts,
  gone: AbortSignal,
): Promise<Result<string | null, NotApproved>> {
  const { connector, operation } = match;
  if (operation.approval === 'none') return ok(null);
  // An API key exists once it is stored; an oauth2 credential may still have to be authorised, or authorised again.
  const isSure = connector.spec.credential.kind === 'api_key' && credentials.isStored(connector.credential);
  if (!isSure) {
    const found = await credentials.resolve(connector.credential);
    if (!found.ok) return err({ refusal: found.error, approvalId: null });
  }
  const { sessionId, ...identity } = request;
  const { path, query } = splitTarget(request.target);
  const bodyBytes = request.body.reduce((total, chunk) => total + chunk.length, 0);
  const identified = { fqn: connector.spec.fqn, operation: operation.name, ...identity };
  const fingerprint = await requestFingerprint(identified);
  const scope = await requestScope(identified, path, match.document !== undefined);
  const summary = requestSummary(connector, operation, {
    host: request.host,
    path,
    query,
    bodyBytes,
    document: match.document,
  });
  const show = async () => {
    const material = await resolveMaterial(
      connectorBinding(connector, request.host),
      request.host,
      credentials,
      materials,
    );
    return material.ok ? heldContent(request, material.value.scrub) : null;
  };
  return approvals.approve({ match, fingerprint, scope, summary, show, sessionId }, gone);
}

import { parseJsonBytes } from '../../../shared/model/json.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { clientUrlProblem } from '../../../shared/net/client_url.ts';
import { mcpClientDocument } from '../../../shared/wire/mcp/mcp_clients.ts';
import { nowSeconds, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { takeAttempt, type Throttle } from '../../sign_in/throttle.ts';
import type { McpClientRow } from '../../store/mcp/mcp_clients.ts';

/** Limits the documents that one user makes the control plane fetch. */
const FETCHES: Throttle = { kind: 'mcp client documents', most: 30, windowSeconds: 10 * 60 };
const LIMITS = { maxReplyBytes: 64 * 1024, timeoutMs: 5_000 };
/** How long a copy is used. Who publishes a document decides who gets codes, so a change has to arrive soon. */
const KEPT_SECONDS = 3600;

/**
 * Fetches the document at the URL that is a client's id (OAuth client ID metadata document). It goes through the outbound
 * port as a stranger's URL: https to a public host, no redirects. The error is a sentence for the user.
 */
export async function fetchClientDocument(
  context: ServiceContext,
  userId: string,
  id: string,
): Promise<Result<McpClientRow, string>> {
  const problem = clientUrlProblem(id);
  if (problem !== null) return err(`The client's id ${problem}.`);
  const allowed = await takeAttempt(context, FETCHES, userId);
  if (!allowed.ok) return err(`There were ${allowed.error.message}.`);
  const headers = { accept: 'application/json', 'user-agent': 'svc' };
  const called = await context.outbound.call({
    method: 'GET',
    url: id,
    headers,
    body: null,
    limits: LIMITS,
    isStrangers: true,
  });
  if (!called.ok) return err(`The document of this client cannot be read: ${called.error.message}.`);
  const { status, contentType, body } = called.value;
  if (status !== 200 || !/^application\/([a-z0-9.-]+\+)?json\b/i.test(contentType)) {
    return err(`The document of this client cannot be read: its host answered ${status}, and not with JSON.`);
  }
  const document = mcpClientDocument.safeParse(parseJsonBytes(body));
  if (!document.success) return err(`The document of this client is not valid (${fieldOf(document.error.issues)}).`);
  if (document.data.client_id !== id) return err('The document at the URL of this client is about another one.');
  const { client_name: name = '', redirect_uris: uris } = document.data;
  const expiresAt = nowSeconds(context) + KEPT_SECONDS;
  const redirectUris = JSON.stringify(uris);
  return ok({ id, kind: 'document', name, redirectUris, createdAt: nowText(context), expiresAt });
}

function fieldOf(issues: readonly { readonly path: readonly PropertyKey[] }[]): string {
  return issues[0]?.path.map(String).join('.') || 'it is not JSON';
}

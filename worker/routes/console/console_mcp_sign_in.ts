import { z } from 'zod';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { mcpAuthorizationInput } from '../../../shared/wire/mcp/mcp_authorization.ts';
import type { McpServerRecord } from '../../../shared/wire/mcp/mcp_servers.ts';
import { EMPTY_FORM, type FormState } from '../../pages/components/form_field.ts';
import {
  mcpSignInForgetPage,
  mcpSignInPage,
  mcpSignInStartPage,
  SIGN_IN_SECRETS,
} from '../../pages/mcp/mcp_sign_in.ts';
import type { Caller } from '../../kernel/caller.ts';
import { beginMcpAuthorisation, removeMcpAuthorisation } from '../../services/mcp/mcp_authorisation.ts';
import { CALLBACK_PATH } from '../../services/oauth/oauth_authorisation.ts';
import type { AppContext } from '../http/app_env.ts';
import { redirectOrigin } from '../api/connector_authorisation.ts';
import { confirmedChange } from './confirmed_change.ts';
import { type Fields, formAgain, invalidForm, problem, toRefusedForm, dropEmpty } from './console.ts';
import { pageOfServer, changeOfServer, serverOfPath } from './console_mcp_servers.ts';
import { consolePage } from './pages.ts';

/** `GET /mcp-servers/{id}/authorize`: with a manually registered client. */
export const getMcpSignIn = pageOfServer(async (c, caller, server) => {
  if (server.mode !== 'remote') return problem(c, caller, nothingToSignInError(server));
  return consolePage(c, caller, signInForm(c, server, EMPTY_FORM));
});

/** `POST /mcp-servers/{id}/authorize`: starts it and shows where it leads, before the browser goes there. */
export const submitMcpSignIn = changeOfServer(async (c, caller, server, fields) => {
  const context = c.get('context');
  const input = mcpAuthorizationInput.safeParse(inputOf(fields));
  if (!input.success) return showAgain(c, caller, server, invalidForm(fields, input.error, SIGN_IN_SECRETS), null);
  const origin = redirectOrigin(context, c.req.url);
  const begun = origin.ok
    ? await beginMcpAuthorisation(context, caller, server.id, { input: input.data, ...origin.value })
    : origin;
  if (!begun.ok) return showAgain(c, caller, server, toRefusedForm(fields, begun.error, SIGN_IN_SECRETS), begun.error);
  return consolePage(c, caller, mcpSignInStartPage(server, begun.value, context.clock.now()));
});

/** `/mcp-servers/{id}/authorize/forget` */
export const mcpSignInForgetting = confirmedChange({
  find: serverOfPath,
  name: ({ name }) => name,
  page: mcpSignInForgetPage,
  make: (context, caller, { id }) => removeMcpAuthorisation(context, caller, id),
  happened: 'forgotten',
  next: ({ id }) => [`/mcp-servers/${id}`, 'mcp_sign_in_forgotten'],
});

function showAgain(c: AppContext, caller: Caller, server: McpServerRecord, form: FormState, error: ApiError | null) {
  return formAgain(c, caller, signInForm(c, server, form, hostsOf(error)), error);
}

const unconfirmed = z.object({ hosts: z.array(z.string()) });

/** The hosts that a refusal asks about. */
function hostsOf(error: ApiError | null): readonly string[] {
  if (error?.code !== 'authorization_server_unconfirmed') return [];
  return unconfirmed.safeParse(error.details).data?.hosts ?? [];
}

function signInForm(c: AppContext, server: McpServerRecord, form: FormState, hosts: readonly string[] = []) {
  const origin = redirectOrigin(c.get('context'), c.req.url);
  // Confirmed hosts stay confirmed while the rest of the form is corrected.
  const agreed = (form.values['authorization_hosts'] ?? '').split(' ').filter((host) => host !== '');
  const redirectUrl = origin.ok ? origin.value.origin + CALLBACK_PATH : null;
  return mcpSignInPage({ server, form, redirectUrl, hosts: hosts.length > 0 ? hosts : agreed });
}

/** The button on the server's page sends no fields: then the stored client is used, or one is registered. */
function inputOf(fields: Fields): Record<string, unknown> {
  const { scopes, authorization_hosts: hosts, client_authentication: authentication, ...client } = dropEmpty(fields);
  return {
    ...client,
    ...(client['client_id'] !== undefined && { client_authentication: authentication }),
    ...(hosts !== undefined && { authorization_hosts: hosts.split(' ') }),
    ...(scopes !== undefined && { scopes: scopes.split(/\s+/).filter((scope) => scope !== '') }),
  };
}

function nothingToSignInError({ name }: McpServerRecord): ApiError {
  return apiError('invalid_input', `${name} is a local server: only remote servers have a sign-in`);
}

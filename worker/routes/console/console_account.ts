import type { Result } from '../../../shared/model/result.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import type { SignInRecord } from '../../../shared/wire/sign_ins.ts';
import { accountPage, disconnectPage, signOutPage } from '../../pages/people/account.ts';
import { describeUser } from '../../services/people/account.ts';
import type { Caller } from '../../kernel/caller.ts';
import { listPersonalTokenPage, createPersonalToken, removePersonalToken } from '../../tokens/personal_tokens.ts';
import { disconnectMcpClient, listMcpClientPage } from '../../tokens/mcp/mcp_connections.ts';
import { endSignIn, listSignInPage } from '../../tokens/sign_ins.ts';
import type { AppContext } from '../http/app_env.ts';
import {
  redirectDone,
  forChange,
  forReader,
  problem,
  type Fields,
  formAgain,
  invalidForm,
  toRefusedForm,
} from './console.ts';
import { findListed } from './find_listed.ts';
import { consolePage } from './pages.ts';
import { SCOPES, tokenInput, type TokenRecord } from '../../../shared/wire/tokens.ts';
import { TICKED } from '../../pages/components/checkbox_field.ts';
import { EMPTY_FORM } from '../../pages/components/form_field.ts';
import { createdTokenPage, newTokenPage, SCOPE_FIELD, tokenRevocationPage } from '../../pages/people/personal_token.ts';
import { confirmedChange } from './confirmed_change.ts';
import { readPushView } from './people/console_push.ts';

const SHOWN = 50;

/** `GET /account?sign_ins=&tokens=&mcp_clients=`: each list from its cursor on. */
export const getAccount = forReader(async (c, caller) => {
  const context = c.get('context');
  const { sign_ins: after, tokens: tokensAfter, mcp_clients: clientsAfter, done: code } = c.req.query();
  const signIns = await listSignInPage(context, caller, { limit: SHOWN, cursor: after });
  if (!signIns.ok) return problem(c, caller, signIns.error);
  const tokens = await listPersonalTokenPage(context, caller, { limit: SHOWN, cursor: tokensAfter });
  if (!tokens.ok) return problem(c, caller, tokens.error);
  const mcpClients = await listMcpClientPage(context, caller, { limit: SHOWN, cursor: clientsAfter });
  if (!mcpClients.ok) return problem(c, caller, mcpClients.error);
  const me = await describeUser(context, caller);
  const { local } = context;
  const push = await readPushView(c, caller);
  const lists = { signIns: signIns.value, tokens: tokens.value, mcpClients: mcpClients.value };
  return consolePage(
    c,
    caller,
    accountPage({ me, ...lists, push, isLocal: local !== null, done: code, nowMs: context.clock.now() }),
  );
});

/** `GET /account/mcp-clients/{id}/end`: asks for confirmation. */
export const askDisconnect = forReader(async (c, caller) => {
  const client = await findListed(
    c,
    (query) => listMcpClientPage(c.get('context'), caller, query),
    (id) => `there is no MCP client ${id}: the page Sign-ins and tokens lists yours`,
  );
  return client.ok ? consolePage(c, caller, disconnectPage(client.value)) : problem(c, caller, client.error);
});

/** `POST /account/mcp-clients/{id}/end` */
export const submitDisconnect = forChange(async (c, caller) => {
  const ended = await disconnectMcpClient(c.get('context'), caller, c.req.param('id') ?? '');
  return ended.ok ? redirectDone(c, '/account', 'mcp_client_ended') : problem(c, caller, ended.error);
});

/** `GET /account/sign-ins/{id}/end`: asks for confirmation. */
export const askSignOut = forReader(async (c, caller) => {
  const signIn = await ownSignIn(c, caller);
  return signIn.ok ? consolePage(c, caller, signOutPage(signIn.value)) : problem(c, caller, signIn.error);
});

/** `POST /account/sign-ins/{id}/end`. After signing out the current browser, the user gets the sign-in page. */
export const submitSignOut = forChange(async (c, caller) => {
  const ended = await endSignIn(c.get('context'), caller, c.req.param('id') ?? '');
  return ended.ok ? redirectDone(c, '/account', 'signed_out') : problem(c, caller, ended.error);
});

function ownSignIn(c: AppContext, caller: Caller): Promise<Result<SignInRecord, ApiError>> {
  return findListed(
    c,
    (query) => listSignInPage(c.get('context'), caller, query),
    (id) => `there is no sign-in ${id}: the page Sign-ins and tokens lists yours`,
  );
}

const DEFAULT_DAYS = '90';

/** `GET /account/tokens/new` */
export const getNewToken = forReader((c, caller) => {
  return consolePage(c, caller, newTokenPage({ ...EMPTY_FORM, values: { expires_in_days: DEFAULT_DAYS } }));
});

/**
 * `POST /account/tokens`: only this page shows the token, so there is no redirect to one that could be opened again.
 */
export const submitToken = forChange(async (c, caller, fields) => {
  const parsed = tokenInput.safeParse(inputOf(fields));
  if (!parsed.success) return formAgain(c, caller, newTokenPage(invalidForm(fields, parsed.error)));
  const created = await createPersonalToken(c.get('context'), caller, parsed.data);
  if (created.ok) return consolePage(c, caller, createdTokenPage(created.value), 201);
  return formAgain(c, caller, newTokenPage(toRefusedForm(fields, created.error)), created.error);
});

function inputOf({ name = '', expires_in_days: days = '', ...boxes }: Fields) {
  const scopes = SCOPES.filter((scope) => boxes[SCOPE_FIELD + scope] === TICKED);
  return { name, scopes, expires_in_days: /^\d+$/.test(days) ? Number(days) : days };
}

/** `/account/tokens/{id}/revoke` */
export const tokenRevocation = confirmedChange({
  find: liveToken,
  name: ({ name }) => name,
  page: tokenRevocationPage,
  make: (context, caller, { id }) => removePersonalToken(context, caller, id),
  happened: 'revoked',
  next: () => ['/account', 'token_revoked'],
});

function liveToken(c: AppContext, caller: Caller): Promise<Result<TokenRecord, ApiError>> {
  return findListed(
    c,
    (query) => listPersonalTokenPage(c.get('context'), caller, query),
    (id) => `there is no active token ${id}: the page Sign-ins and tokens lists yours`,
    (token) => token.revoked_at === null,
  );
}

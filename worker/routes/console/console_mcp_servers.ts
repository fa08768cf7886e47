import { type GatewayEntry, gatewayEntry } from '../../../shared/mcp/client_links.ts';
import { mcpCredentialAt } from '../../../shared/model/mcp_server.ts';
import { Secret } from '../../../shared/model/secret.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import {
  mcpCredentialInput,
  mcpServerInput,
  type McpServerInput,
  type McpServerRecord,
} from '../../../shared/wire/mcp/mcp_servers.ts';
import { ok, type Result } from '../../../shared/model/result.ts';
import { newerVersions } from '../../marketplace/newer_versions.ts';
import { listSourceRecords } from '../../services/sources/secret_sources.ts';
import { showUpgrade } from '../../marketplace/upgrade.ts';
import { listQueryOf } from '../../pages/components/arranged_list.ts';
import { EMPTY_FORM, type FormState } from '../../pages/components/form_field.ts';
import { pathWith } from '../../pages/components/pager.ts';
import {
  type AskedCredential,
  credentialField,
  mcpConnectPage,
  mcpCredentialsPage,
} from '../../pages/mcp/mcp_credentials.ts';
import { mcpClientsPage } from '../../pages/mcp/mcp_clients.ts';
import { mcpServerPage, toolsForm } from '../../pages/mcp/mcp_server.ts';
import { mcpCredentialDeletionPage, mcpServerDeletionPage } from '../../pages/mcp/mcp_server_changes.ts';
import { LOG_MS, MOST_LOG_EVENTS } from '../../pages/mcp/mcp_server_log.ts';
import { mcpServersPage } from '../../pages/mcp/mcp_servers.ts';
import { listMcpServerEvents } from '../../services/audit/audit_log.ts';
import { type Caller, writableOwner } from '../../kernel/caller.ts';
import { readAll } from '../../kernel/read_all.ts';
import { previewServerRemoval } from '../../services/vault/removal_preview.ts';
import { describeServerUse } from '../../services/mcp/server_use.ts';
import { removeMcpCredential, storeMcpCredential } from '../../services/mcp/mcp_credentials.ts';
import {
  getMcpServer,
  listMcpServerPage,
  listMcpServerRevisions,
  putMcpServer,
  removeMcpServer,
} from '../../services/mcp/mcp_servers.ts';
import type { AppContext } from '../http/app_env.ts';
import { confirmedChange } from './confirmed_change.ts';
import {
  redirectDone,
  type Fields,
  forChange,
  formAgain,
  forReader,
  invalidForm,
  type PageRoute,
  problem,
  toRefusedForm,
} from './console.ts';
import { toolsOf } from './console_mcp_form.ts';
import { invalidInput } from '../http/error_reply.ts';
import { consolePage } from './pages.ts';

/** `GET /mcp-servers?q=&sort=&page=` */
export const getMcpServersPage = forReader(async (c, caller) => {
  const context = c.get('context');
  const [servers, lastUseOf] = await Promise.all([
    readAll((query) => listMcpServerPage(context, caller, query)),
    describeServerUse(context, caller),
  ]);
  const newer = await newerVersions(context, servers.items);
  const { done, ...query } = c.req.query();
  const view = { servers, newer, lastUseOf, query: listQueryOf(query), done, nowMs: context.clock.now() };
  return consolePage(c, caller, mcpServersPage(view));
});

/** A page about the server in the path. */
export function pageOfServer(
  answer: (c: AppContext, caller: Caller, server: McpServerRecord) => Promise<Response>,
): PageRoute {
  return forReader(async (c, caller) => {
    const server = await serverOfPath(c, caller);
    return server.ok ? answer(c, caller, server.value) : problem(c, caller, server.error);
  });
}

/** A change of the server in the path. */
export function changeOfServer(
  answer: (c: AppContext, caller: Caller, server: McpServerRecord, fields: Fields) => Promise<Response>,
): PageRoute {
  return forChange(async (c, caller, fields) => {
    const server = await serverOfPath(c, caller);
    return server.ok ? answer(c, caller, server.value, fields) : problem(c, caller, server.error);
  });
}

/** The server that the path names. */
export function serverOfPath(c: AppContext, caller: Caller): Promise<Result<McpServerRecord, ApiError>> {
  return getMcpServer(c.get('context'), caller, c.req.param('id') ?? '');
}

/** `GET /mcp-servers/{id}` */
export const getMcpServerPage = pageOfServer(async (c, caller, server) => {
  return consolePage(c, caller, await serverView(c, caller, server, toolsForm(server)));
});

async function serverView(c: AppContext, caller: Caller, server: McpServerRecord, tools: FormState) {
  const context = c.get('context');
  const revisions = await listMcpServerRevisions(context, caller, server.id);
  const newer = (await newerVersions(context, [server])).get(server.id) ?? null;
  const items = revisions.ok ? revisions.value.items : [];
  const nowMs = context.clock.now();
  const recent = { sinceMs: nowMs - LOG_MS, limit: MOST_LOG_EVENTS };
  return mcpServerPage({
    server,
    revisions: items,
    minted: await listMinted(c, caller, server),
    newer,
    events: await listMcpServerEvents(context, caller, server.id, recent),
    tools,
    done: c.req.query('done'),
    nowMs,
    mayChange: writableOwner(caller, server.owner).ok,
  });
}

async function listMinted(c: AppContext, caller: Caller, { id, owner, credentials }: McpServerRecord) {
  if (credentials.length === 0) return new Set<string>();
  const sources = await listSourceRecords(c.get('context'), caller, owner);
  return new Set(
    sources.flatMap(({ path }) => {
      const credential = mcpCredentialAt(path);
      return credential?.serverId === id ? [credential.name] : [];
    }),
  );
}

/** The fields of a server that users edit. */
export function toWrittenFields(server: McpServerRecord): McpServerInput {
  const { owner, name, description, mode, version, registry_id, command, env } = server;
  const { url, transport, headers, tools, enabled, isolation } = server;
  const fields = { owner, name, description, mode, version, registry_id, command, env, url, transport };
  return { ...fields, headers, tools, enabled, isolation };
}

/** `POST /mcp-servers/{id}/enabled` */
export const submitEnabled = changeOfServer(async (c, caller, server, { enabled }) => {
  const input = mcpServerInput.safeParse({ ...toWrittenFields(server), enabled: enabled === 'true' });
  if (!input.success) return problem(c, caller, invalidInput('json', input.error));
  const changed = await putMcpServer(c.get('context'), caller, server.id, input.data, server.revision);
  if (!changed.ok) return problem(c, caller, changed.error);
  return redirectDone(c, `/mcp-servers/${server.id}`, enabled === 'true' ? 'mcp_enabled' : 'mcp_disabled');
});

/** `POST /mcp-servers/{id}/tools` */
export const submitTools = changeOfServer(async (c, caller, server, fields) => {
  const again = async (form: FormState, error: ApiError | null) =>
    formAgain(c, caller, await serverView(c, caller, server, form), error);
  if (fields['revision'] !== String(server.revision)) return again({ ...formOf(fields), refusal: CHANGED }, null);
  const input = mcpServerInput.safeParse({ ...toWrittenFields(server), tools: toolsOf(fields) });
  if (!input.success) return again(toolProblems(invalidForm(fields, input.error)), null);
  const changed = await putMcpServer(c.get('context'), caller, server.id, input.data, server.revision);
  if (!changed.ok) return again(toolProblems(toRefusedForm(fields, changed.error)), changed.error);
  return redirectDone(c, `/mcp-servers/${server.id}`, 'mcp_tools_saved');
});

export const CHANGED =
  'Somebody changed the server meanwhile: this page shows it as it is now. Check it and save again.';

function formOf(fields: Fields): FormState {
  return { values: fields, problems: [], refusal: null };
}

/** `tools.allow.2` belongs to the field `allow`. */
function toolProblems(form: FormState): FormState {
  const problems = form.problems.map(({ field, message }) => {
    return { field: field.replace(/^tools\./, '').replace(/\.\d+$/, ''), message };
  });
  return { ...form, problems };
}

/** `/mcp-servers/{id}/delete` */
export const mcpServerDeletion = confirmedChange({
  find: async (c, caller) => {
    const context = c.get('context');
    const server = await serverOfPath(c, caller);
    if (!server.ok) return server;
    const preview = await previewServerRemoval(context, caller, server.value.id);
    return preview.ok ? ok({ server: server.value, preview: preview.value, nowMs: context.clock.now() }) : preview;
  },
  name: ({ server }) => server.name,
  page: mcpServerDeletionPage,
  make: (context, caller, { server }) => removeMcpServer(context, caller, server.id),
  happened: 'deleted',
  next: () => ['/mcp-servers', 'mcp_deleted'],
});

/** `GET /mcp-servers/{id}/connect` */
export const getMcpConnect = pageOfServer(async (c, caller, server) => {
  const nowMs = c.get('context').clock.now();
  const mayChange = writableOwner(caller, server.owner).ok;
  return consolePage(
    c,
    caller,
    mcpConnectPage({ server, entry: entryOf(c), done: c.req.query('done'), nowMs, mayChange }),
  );
});

/** `GET /mcp-servers/clients`: how a client gets all of them. */
export const getMcpClientsPage = forReader((c, caller) => consolePage(c, caller, mcpClientsPage(entryOf(c))));

function entryOf(c: AppContext): GatewayEntry {
  return gatewayEntry(c.get('context').local?.command ?? ['svc']);
}

/** `GET /mcp-servers/{id}/credentials?name=&install=`: one of them, or the missing ones. */
export const getMcpCredentials = pageOfServer(async (c, caller, server) => {
  const isInstall = c.req.query('install') === '1';
  const asked = await listAskedCredentials(c, caller, server, c.req.query('name'));
  const view = { server, asked, isInstall, form: EMPTY_FORM, done: c.req.query('done') };
  return consolePage(c, caller, mcpCredentialsPage(view));
});

/** The credentials that the server refers to, and those that its publisher describes, with the publisher's text. */
async function listAskedCredentials(
  c: AppContext,
  caller: Caller,
  server: McpServerRecord,
  only: string | undefined,
): Promise<readonly AskedCredential[]> {
  const published = await showUpgrade(c.get('context'), caller, server.id, null);
  const inputs = published.ok ? published.value.preview.inputs : [];
  const described = new Map(inputs.map(({ credential, description }) => [credential, description]));
  const known = server.credentials.map(({ name, set, required }) => {
    return { name, description: described.get(name) ?? '', isSet: set, isRequired: required };
  });
  if (only !== undefined) return known.filter(({ name }) => name === only);
  const mayBeGiven = server.mode === 'local' ? inputs.filter(({ secret }) => secret) : [];
  const optional = mayBeGiven.flatMap(({ credential, description }) => {
    const isKnown = credential === null || known.some(({ name }) => name === credential);
    return isKnown ? [] : [{ name: credential, description, isSet: false, isRequired: false }];
  });
  return [...known.filter(({ isSet }) => !isSet), ...optional];
}

/** `POST /mcp-servers/{id}/credentials`: stores each one that is filled in. */
export const submitMcpCredentials = changeOfServer(async (c, caller, server, fields) => {
  const isInstall = fields['install'] === '1';
  const given = Object.entries(fields).filter(
    ([field, value]) => field.startsWith(credentialField('')) && value !== '',
  );
  const names = given.map(([field]) => field.slice(credentialField('').length));
  const again = async (form: FormState, error: ApiError | null) => {
    const all = await listAskedCredentials(c, caller, server, names.length === 1 && !isInstall ? names[0] : undefined);
    const view = { server, asked: all, isInstall, form: { ...form, values: {} }, done: undefined };
    return formAgain(c, caller, mcpCredentialsPage(view), error);
  };
  if (given.length === 0)
    return again({ ...EMPTY_FORM, refusal: 'All fields were empty, so nothing was stored.' }, null);
  for (const [index, name] of names.entries()) {
    const parsed = mcpCredentialInput.safeParse({ env_var_name: name, secret_value: given[index]?.[1] });
    if (!parsed.success) return again(credentialProblems(name, invalidForm({}, parsed.error)), null);
    const value = new Secret(parsed.data.secret_value);
    const stored = await storeMcpCredential(c.get('context'), caller, server.id, { name, value });
    if (!stored.ok) return again(credentialProblems(name, toRefusedForm({}, stored.error)), stored.error);
  }
  const path = `/mcp-servers/${server.id}${isInstall ? '/connect' : ''}`;
  return c.redirect(pathWith(path, { done: 'mcp_credential_stored' }), 303);
});

function credentialProblems(name: string, form: FormState): FormState {
  return { ...form, problems: form.problems.map(({ message }) => ({ field: credentialField(name), message })) };
}

/** `/mcp-servers/{id}/credentials/delete?name=` */
export const mcpCredentialDeletion = confirmedChange({
  find: async (c, caller, { name = '' }) => {
    const server = await serverOfPath(c, caller);
    return server.ok ? ok({ server: server.value, name }) : server;
  },
  name: ({ name }) => name,
  page: ({ server, name }, form) => mcpCredentialDeletionPage(server, name, form),
  make: (context, caller, { server, name }) => removeMcpCredential(context, caller, server.id, name),
  happened: 'deleted',
  next: ({ server }) => [`/mcp-servers/${server.id}`, 'mcp_credential_removed'],
});

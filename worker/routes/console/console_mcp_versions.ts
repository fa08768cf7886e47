import { mcpRollbackInput } from '../../../shared/wire/mcp/mcp_servers.ts';
import { upgradeInput } from '../../../shared/wire/marketplace.ts';
import { apiError } from '../../../shared/wire/errors.ts';
import { showUpgrade, upgrade } from '../../marketplace/upgrade.ts';
import { EMPTY_FORM } from '../../pages/components/form_field.ts';
import { pathWith } from '../../pages/components/pager.ts';
import { configurationChanges, rollbackPage, upgradeInputs, upgradePage } from '../../pages/mcp/mcp_server_changes.ts';
import { listMcpServerRevisions, rollbackMcpServer } from '../../services/mcp/mcp_servers.ts';
import { redirectDone, formAgain, problem, toRefusedForm } from './console.ts';
import { inputsOf, toRefusedInputs } from './console_mcp_install.ts';
import { pageOfServer, changeOfServer } from './console_mcp_servers.ts';
import { invalidInput } from '../http/error_reply.ts';
import { consolePage } from './pages.ts';

/** `GET /mcp-servers/{id}/upgrade?version=`: the changes. */
export const getMcpUpgradePage = pageOfServer(async (c, caller, server) => {
  const context = c.get('context');
  const found = await showUpgrade(context, caller, server.id, c.req.query('version') ?? null);
  if (!found.ok) return problem(c, caller, found.error);
  const nowMs = context.clock.now();
  return consolePage(c, caller, upgradePage({ server, upgrade: found.value, form: EMPTY_FORM, nowMs }));
});

/** `POST /mcp-servers/{id}/upgrade`: to exactly the version that was shown. */
export const submitMcpUpgrade = changeOfServer(async (c, caller, server, fields) => {
  const context = c.get('context');
  const { version = '' } = fields;
  const shown = await showUpgrade(context, caller, server.id, version === '' ? null : version);
  if (!shown.ok) return problem(c, caller, shown.error);
  const asked = upgradeInputs(shown.value);
  const parsed = upgradeInput.safeParse({ ...(version !== '' && { version }), inputs: inputsOf(fields, asked) });
  const upgraded = parsed.success
    ? await upgrade(context, caller, server.id, parsed.data)
    : { ok: false as const, error: invalidInput('json', parsed.error) };
  if (!upgraded.ok) {
    const form = toRefusedInputs(fields, asked, upgraded.error);
    const view = { server, upgrade: shown.value, form, nowMs: context.clock.now() };
    return formAgain(c, caller, upgradePage(view), upgraded.error);
  }
  const lacks = upgraded.value.value.required_credentials.some(({ required }) => required);
  const path = `/mcp-servers/${server.id}${lacks ? '/credentials' : ''}`;
  return c.redirect(pathWith(path, { done: 'mcp_upgraded' }), 303);
});

/** `GET /mcp-servers/{id}/rollback?revision=`: the changes. */
export const askMcpRollback = pageOfServer(async (c, caller, server) => {
  const revisions = await listMcpServerRevisions(c.get('context'), caller, server.id);
  if (!revisions.ok) return problem(c, caller, revisions.error);
  const wanted = revisions.value.items.find(({ revision }) => String(revision) === c.req.query('revision'));
  if (wanted === undefined) return problem(c, caller, apiError('not_found', 'this revision no longer exists'));
  const changes = configurationChanges(server, wanted.configuration);
  return consolePage(c, caller, rollbackPage({ server, revision: wanted.revision, changes, form: EMPTY_FORM }));
});

/** `POST /mcp-servers/{id}/rollback` */
export const submitMcpRollback = changeOfServer(async (c, caller, server, fields) => {
  const parsed = mcpRollbackInput.safeParse({ revision: Number(fields['revision']) });
  if (!parsed.success) return problem(c, caller, invalidInput('json', parsed.error));
  const { revision } = parsed.data;
  const returned = await rollbackMcpServer(c.get('context'), caller, server.id, revision);
  if (returned.ok) return redirectDone(c, `/mcp-servers/${server.id}`, 'mcp_rolled_back');
  const form = toRefusedForm({}, returned.error);
  return formAgain(c, caller, rollbackPage({ server, revision, changes: [], form }), returned.error);
});

import type { ApiError } from '../../../shared/wire/errors.ts';
import { withOwnId } from '../../../shared/wire/mcp/mcp_references.ts';
import {
  type McpServerRecord,
  listMissingCredentials,
  type ValidMcpServer,
} from '../../../shared/wire/mcp/mcp_servers.ts';
import { EMPTY_FORM, type FormState } from '../../pages/components/form_field.ts';
import type { Page } from '../../pages/frame/layout.ts';
import { pathWith } from '../../pages/components/pager.ts';
import { type ChangedValue, configurationChanges } from '../../pages/mcp/mcp_server_changes.ts';
import { editServerPage, newServerPage } from '../../pages/mcp/mcp_server_form.ts';
import type { Caller } from '../../kernel/caller.ts';
import { createMcpServer, getMcpServer, putMcpServer } from '../../services/mcp/mcp_servers.ts';
import type { AppContext } from '../http/app_env.ts';
import { redirectDone, forChange, formAgain, forReader, problem, ownerChoice } from './console.ts';
import { formOfServer, readServerForm, toRefusedServerForm } from './console_mcp_form.ts';
import { pageOfServer, CHANGED, changeOfServer } from './console_mcp_servers.ts';
import { consolePage } from './pages.ts';

/** `GET /mcp-servers/new?mode=` */
export const getNewMcpServer = forReader((c, caller) => {
  return consolePage(c, caller, formPage(c, caller, EMPTY_FORM, c.req.query('mode')));
});

/** `POST /mcp-servers` */
export const submitNewMcpServer = forChange(async (c, caller, fields) => {
  const { input, form } = readServerForm(fields, null);
  if (input === null) return formAgain(c, caller, formPage(c, caller, form, fields['mode']));
  const created = await createMcpServer(c.get('context'), caller, input);
  if (!created.ok)
    return formAgain(
      c,
      caller,
      formPage(c, caller, toRefusedServerForm(form, created.error), fields['mode']),
      created.error,
    );
  return c.redirect(nextPath(created.value.value, 'mcp_created'), 303);
});

function formPage(c: AppContext, caller: Caller, form: FormState, mode: string | undefined): Page {
  return newServerPage(form, mode === 'remote' ? 'remote' : 'local', ownerChoice(c, caller));
}

/** Continues to the missing credentials, otherwise to connecting a machine. */
function nextPath(server: McpServerRecord, code: string): string {
  const lacks = listMissingCredentials(server).length > 0;
  return pathWith(`/mcp-servers/${server.id}/${lacks ? 'credentials' : 'connect'}`, { done: code, install: '1' });
}

/** `GET /mcp-servers/{id}/edit` */
export const getMcpEdit = pageOfServer(async (c, caller, server) => {
  const form = { ...EMPTY_FORM, values: formOfServer(server) };
  return consolePage(c, caller, editServerPage({ server, form, changes: null }));
});

/** `POST /mcp-servers/{id}/edit`: only if it is still the shown revision. */
export const submitMcpEdit = changeOfServer(async (c, caller, server, fields) => {
  const { input, form } = readServerForm(fields, server);
  const showAgain = (shown: FormState, error: ApiError | null) =>
    formAgain(c, caller, editServerPage({ server, form: shown, changes: null }), error);
  const isSeen = fields['revision'] === String(server.revision);
  if (input === null) return showAgain(isSeen ? form : { ...form, refusal: CHANGED }, null);
  if (!isSeen) return answerChanged(c, caller, server.id, { input, form });
  const saved = await putMcpServer(c.get('context'), caller, server.id, input, server.revision);
  if (!saved.ok && saved.error.code === 'conflict') return answerChanged(c, caller, server.id, { input, form });
  if (!saved.ok) return showAgain(toRefusedServerForm(form, saved.error), saved.error);
  const lacks = listMissingCredentials(saved.value.value).length > 0;
  return redirectDone(c, `/mcp-servers/${server.id}${lacks ? '/credentials' : ''}`, 'mcp_saved');
});

/** The form with its input, and above it what saving it would change now. */
async function answerChanged(
  c: AppContext,
  caller: Caller,
  id: string,
  typed: { readonly input: ValidMcpServer; readonly form: FormState },
): Promise<Response> {
  const server = await getMcpServer(c.get('context'), caller, id);
  if (!server.ok) return problem(c, caller, server.error);
  const form = { ...typed.form, refusal: CHANGED };
  const changes = changesTo(server.value, typed.input);
  return consolePage(c, caller, editServerPage({ server: server.value, form, changes }), 409);
}

function changesTo(server: McpServerRecord, input: ValidMcpServer): readonly ChangedValue[] {
  const own = withOwnId(input, server.id);
  return own.ok ? configurationChanges(server, { ...own.value, registry_id: server.registry_id }) : [];
}

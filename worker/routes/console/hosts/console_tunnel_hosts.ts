import { tunnelHostInput } from '../../../../shared/wire/hosts/tunnel_hosts.ts';
import { EMPTY_FORM, type FormState } from '../../../pages/components/form_field.ts';
import { tunnelHostRemovalPage, tunnelHostsPage } from '../../../pages/bindings/tunnel_hosts.ts';
import { type Caller, mayActAs } from '../../../kernel/caller.ts';
import {
  addTunnelHost,
  getTunnelHost,
  listTunnelHostPage,
  removeTunnelHost,
} from '../../../services/bindings/tunnel_hosts.ts';
import type { AppContext } from '../../http/app_env.ts';
import { confirmedChange } from '../confirmed_change.ts';
import {
  dropEmpty,
  forChange,
  formAgain,
  forReader,
  invalidForm,
  problem,
  redirectDone,
  toRefusedForm,
  ownerChoice,
} from '../console.ts';
import { consolePage } from '../pages.ts';

const SHOWN = 100;

/** `GET /tunnel-hosts` */
export const getTunnelHostsPage = forReader(async (c, caller) => {
  const page = await pageWith(c, caller, EMPTY_FORM);
  return page.ok ? consolePage(c, caller, page.value) : problem(c, caller, page.error);
});

async function pageWith(c: AppContext, caller: Caller, form: FormState) {
  const context = c.get('context');
  const { cursor, done } = c.req.query();
  const hosts = await listTunnelHostPage(context, caller, { limit: SHOWN, cursor });
  if (!hosts.ok) return hosts;
  const view = {
    hosts: hosts.value,
    cursor,
    done,
    nowMs: context.clock.now(),
    isAdmin: mayActAs(caller, 'admin'),
    owners: ownerChoice(c, caller),
    form,
  };
  return { ok: true, value: tunnelHostsPage(view) } as const;
}

/** `POST /tunnel-hosts` */
export const submitTunnelHost = forChange(async (c, caller, fields) => {
  const parsed = tunnelHostInput.safeParse(dropEmpty(fields));
  const added = parsed.success ? await addTunnelHost(c.get('context'), caller, parsed.data) : null;
  if (added?.ok === true) return redirectDone(c, '/tunnel-hosts', 'tunnel_host_added');
  const refused = added === null ? undefined : added.error;
  const form =
    refused !== undefined
      ? toRefusedForm(fields, refused)
      : parsed.success
        ? EMPTY_FORM
        : invalidForm(fields, parsed.error);
  const page = await pageWith(c, caller, form);
  return page.ok ? formAgain(c, caller, page.value, refused) : problem(c, caller, page.error);
});

/** `/tunnel-hosts/{id}/delete` */
export const tunnelHostRemoval = confirmedChange({
  find: (c, caller) => getTunnelHost(c.get('context'), caller, c.req.param('id') ?? ''),
  name: ({ host }) => host,
  page: tunnelHostRemovalPage,
  make: (context, caller, { id }) => removeTunnelHost(context, caller, id),
  happened: 'removed',
  next: () => ['/tunnel-hosts', 'tunnel_host_removed'],
});

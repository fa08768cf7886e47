import { clientCertificateInput } from '../../../../shared/wire/hosts/client_certificates.ts';
import { clientCertificateRemovalPage, clientCertificatesPage } from '../../../pages/bindings/client_certificates.ts';
import { EMPTY_FORM, type FormState } from '../../../pages/components/form_field.ts';
import type { Caller } from '../../../kernel/caller.ts';
import {
  addClientCertificate,
  getClientCertificate,
  listClientCertificatePage,
  removeClientCertificate,
} from '../../../services/bindings/client_certificates.ts';
import { listStoredReferences } from '../../api/binding_fields.ts';
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
} from '../console.ts';
import { consolePage } from '../pages.ts';

const SHOWN = 100;

/** `GET /client-certificates` */
export const getClientCertificatesPage = forReader(async (c, caller) => {
  const page = await pageWith(c, caller, EMPTY_FORM);
  return page.ok ? consolePage(c, caller, page.value) : problem(c, caller, page.error);
});

async function pageWith(c: AppContext, caller: Caller, form: FormState) {
  const context = c.get('context');
  const { cursor, done } = c.req.query();
  const certificates = await listClientCertificatePage(context, caller, { limit: SHOWN, cursor });
  if (!certificates.ok) return certificates;
  const references = await listStoredReferences(c, caller, 'personal');
  const view = { certificates: certificates.value, cursor, done, nowMs: context.clock.now(), references, form };
  return { ok: true, value: clientCertificatesPage(view) } as const;
}

/** `POST /client-certificates` */
export const submitClientCertificate = forChange(async (c, caller, fields) => {
  const { http2, ...others } = dropEmpty(fields);
  const parsed = clientCertificateInput.safeParse({ ...others, ...(http2 === 'true' && { http2: true }) });
  const added = parsed.success ? await addClientCertificate(c.get('context'), caller, parsed.data) : null;
  if (added?.ok === true) return redirectDone(c, '/client-certificates', 'client_certificate_added');
  const refused = added === null ? undefined : added.error;
  const form = parsed.success
    ? refused === undefined
      ? EMPTY_FORM
      : toRefusedForm(fields, refused)
    : invalidForm(fields, parsed.error);
  const page = await pageWith(c, caller, form);
  return page.ok ? formAgain(c, caller, page.value, refused) : problem(c, caller, page.error);
});

/** `/client-certificates/{id}/delete` */
export const clientCertificateRemoval = confirmedChange({
  find: (c, caller) => getClientCertificate(c.get('context'), caller, c.req.param('id') ?? ''),
  name: ({ host }) => host,
  page: clientCertificateRemovalPage,
  make: (context, caller, { id }) => removeClientCertificate(context, caller, id),
  happened: 'removed',
  next: () => ['/client-certificates', 'client_certificate_removed'],
});

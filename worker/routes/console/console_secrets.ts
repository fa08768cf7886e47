import { err, ok } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import { VAULT_SCHEME } from '../../../shared/model/vault_path.ts';
import { ownerQuery, secretInput } from '../../../shared/wire/secrets.ts';
import { listQueryOf } from '../../pages/components/arranged_list.ts';
import { EMPTY_FORM, type FormState } from '../../pages/components/form_field.ts';
import type { Page } from '../../pages/frame/layout.ts';
import { newSecretPage, secretDeletionPage, secretsPage } from '../../pages/bindings/secrets.ts';
import { type Caller, mayActAs } from '../../kernel/caller.ts';
import { previewSecretRemoval } from '../../services/vault/removal_preview.ts';
import { describeVaultUse } from '../../services/vault/credential_uses.ts';
import { listSourceRecords } from '../../services/sources/secret_sources.ts';
import { removeSecret, storeSecret } from '../../services/vault/secrets.ts';
import { confirmedChange } from './confirmed_change.ts';
import {
  redirectDone,
  forChange,
  formAgain,
  forReader,
  invalidForm,
  toRefusedForm,
  dropEmpty,
  ownerChoice,
} from './console.ts';
import type { AppContext } from '../http/app_env.ts';
import { invalidInput } from '../http/error_reply.ts';
import { consolePage } from './pages.ts';

/** Never returned to the browser. */
const SECRET_FIELDS = ['value'];

/** `GET /secrets?q=&sort=&page=` */
export const getSecretsPage = forReader(async (c, caller) => {
  const context = c.get('context');
  const [use, sources] = await Promise.all([describeVaultUse(context, caller), listSourceRecords(context, caller)]);
  const kinds = new Map(
    sources.map(({ id, source, failure }) => [id, { kind: source.kind, isFailing: failure !== null }]),
  );
  const view = {
    use,
    sourceOf: ({ id }: { readonly id: string }) => kinds.get(id) ?? null,
    query: listQueryOf(c.req.query()),
    done: c.req.query('done'),
    nowMs: context.clock.now(),
  };
  return consolePage(c, caller, secretsPage({ ...view, isAdmin: mayActAs(caller, 'admin') }));
});

/** `GET /secrets/new`: with path and owner, for a new value of that secret. */
export const getNewSecret = forReader((c, caller) => {
  const { path = '', owner = 'personal' } = c.req.query();
  return consolePage(c, caller, formPage(c, caller, { ...EMPTY_FORM, values: { path, owner } }));
});

function formPage(c: AppContext, caller: Caller, form: FormState): Page {
  return newSecretPage(form, ownerChoice(c, caller));
}

/** `POST /secrets` */
export const submitSecret = forChange(async (c, caller, fields) => {
  const parsed = secretInput.safeParse(dropEmpty({ ...fields, path: vaultPathIn(fields['path'] ?? '') }));
  if (!parsed.success)
    return formAgain(c, caller, formPage(c, caller, invalidForm(fields, parsed.error, SECRET_FIELDS)));
  const input = { ...parsed.data, value: new Secret(parsed.data.value) };
  const stored = await storeSecret(c.get('context'), caller, input);
  if (stored.ok) return redirectDone(c, '/secrets', 'secret_stored');
  return formAgain(c, caller, formPage(c, caller, toRefusedForm(fields, stored.error, SECRET_FIELDS)), stored.error);
});

/** A whole reference may be pasted into the field of the path. */
export function vaultPathIn(text: string): string {
  const path = text.trim();
  return path.startsWith(VAULT_SCHEME) ? path.slice(VAULT_SCHEME.length) : path;
}

/** `/secrets/delete?path=&owner=`. The link may leave the owner out, the form may not: it deletes what it names. */
export const secretDeletion = confirmedChange({
  find: async (c, caller, { path = '', owner }) => {
    const isForm = c.req.method === 'POST';
    const parsed = ownerQuery.safeParse({ owner: isForm ? (owner ?? '') : owner });
    if (!parsed.success) return err(invalidInput(isForm ? 'json' : 'query', parsed.error));
    const context = c.get('context');
    const preview = await previewSecretRemoval(context, caller, { pathOrId: path, owner: parsed.data.owner });
    return preview.ok ? ok({ preview: preview.value, nowMs: context.clock.now() }) : preview;
  },
  name: ({ preview }) => preview.name,
  page: secretDeletionPage,
  make: (context, caller, { preview: { name, owner } }) => removeSecret(context, caller, { owner, pathOrId: name }),
  happened: 'deleted',
  next: () => ['/secrets', 'secret_deleted'],
});

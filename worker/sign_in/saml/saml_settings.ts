import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { EnterpriseInput, EnterpriseSettings } from '../../../shared/wire/enterprise.ts';
import { targetProblem } from '../../kernel/outbound.ts';
import { nowText, type ServiceContext } from '../../kernel/service_context.ts';
import type { Statement } from '../../store/database.ts';
import { deleteEnterpriseSaml, type EnterpriseSamlRow, putEnterpriseSaml } from '../../store/enterprise_saml.ts';
import { readMetadata } from './saml_metadata.ts';
import { certificatesOf } from './saml_sign_in.ts';

type SamlInput = NonNullable<EnterpriseInput['saml']>;

/** What is wrong with a field of `saml`. */
interface SamlFieldProblem {
  readonly field: string;
  readonly message: string;
}

/** The provider after a change, as it is stored: the one of the new metadata, or the stored one. */
export async function resolveSaml(
  context: ServiceContext,
  input: EnterpriseInput['saml'],
  before: EnterpriseSamlRow | null,
  enterpriseId: string,
): Promise<Result<EnterpriseSamlRow | null, SamlFieldProblem>> {
  if (input === null || input === undefined) return ok(null);
  const { metadata, metadata_url: metadataUrl } = input;
  if (metadata === undefined && metadataUrl === undefined) {
    const message = 'is missing: give the provider’s metadata, or their URL as metadata_url';
    return before === null ? err({ field: 'saml.metadata', message }) : ok(before);
  }
  if (metadata !== undefined && metadataUrl !== undefined) {
    return err({ field: 'saml.metadata', message: 'cannot be given together with metadata_url: choose one' });
  }
  const field = metadata === undefined ? 'saml.metadata_url' : 'saml.metadata';
  const text = await metadataText(context, input);
  if (!text.ok) return err({ field, message: text.error });
  const read = await readMetadata(text.value);
  if (!read.ok) return err({ field, message: `cannot be used: the document ${read.error}` });
  const { entityId, ssoUrl } = read.value;
  const problem = ssoUrlProblem(context, ssoUrl);
  if (problem !== null) return err({ field, message: problem });
  const certificates = JSON.stringify(read.value.certificates);
  const row = { enterpriseId, entityId, ssoUrl, certificates, metadataUrl: metadataUrl ?? null };
  return ok({ ...row, updatedAt: nowText(context) });
}

async function metadataText(context: ServiceContext, input: SamlInput): Promise<Result<string, string>> {
  const { metadata, metadata_url: url } = input;
  if (metadata !== undefined || url === undefined) return ok(metadata ?? '');
  const target = targetProblem(new URL(url), context.local !== null);
  if (target !== null) return err(`cannot be used: ${target.message}`);
  const headers = { accept: 'application/samlmetadata+xml, application/xml' };
  const called = await context.outbound.call({ method: 'GET', url, headers, body: null, limits: METADATA_LIMITS });
  if (!called.ok) return err(`cannot be read: ${called.error.message}`);
  const { status, body } = called.value;
  return status === 200 ? ok(new TextDecoder().decode(body)) : err(`cannot be read: its server answered ${status}`);
}

const METADATA_LIMITS = { maxReplyBytes: 512 * 1024, timeoutMs: 30_000 };

/** The browser goes there with our request, so it must be a page that https protects. */
function ssoUrlProblem({ local }: ServiceContext, ssoUrl: string): string | null {
  const { protocol, username, password } = new URL(ssoUrl);
  const isPage = protocol === 'https:' || (protocol === 'http:' && local !== null);
  return isPage && username === '' && password === '' ? null : 'has a sign-in URL that is not https';
}

export function samlStatements(
  { database }: ServiceContext,
  enterpriseId: string,
  row: EnterpriseSamlRow | null,
): Statement[] {
  return row === null ? [deleteEnterpriseSaml(database, enterpriseId)] : putEnterpriseSaml(database, row);
}

/** Whether two providers sign in the same people: the same name, page and keys. */
export function isSameSaml(one: EnterpriseSamlRow | null, other: EnterpriseSamlRow | null): boolean {
  if (one === null || other === null) return one === other;
  return one.entityId === other.entityId && one.ssoUrl === other.ssoUrl && one.certificates === other.certificates;
}

/** The provider as the API shows it. */
export function describeSaml(row: EnterpriseSamlRow, domains: string[]): NonNullable<EnterpriseSettings['saml']> {
  return {
    entity_id: row.entityId,
    sso_url: row.ssoUrl,
    certificates: certificatesOf(row).map(({ fingerprint }) => fingerprint),
    metadata_url: row.metadataUrl,
    domains,
    metadata_path: `/auth/${row.enterpriseId}/metadata`,
    acs_path: `/auth/${row.enterpriseId}/acs`,
  };
}

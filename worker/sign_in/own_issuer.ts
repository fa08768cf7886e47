import type { Database } from '../store/database.ts';
import { findEnterpriseSaml } from '../store/enterprise_saml.ts';
import { findEnterpriseOidc } from '../store/enterprise_settings.ts';
import { SAML_ISSUER, samlIssuer } from './saml/saml_sign_in.ts';

/** The issuer of the identities of an enterprise's own provider; null if it has none. */
export async function findOwnIssuer(database: Database, enterpriseId: string): Promise<string | null> {
  const oidc = await findEnterpriseOidc(database, enterpriseId);
  if (oidc !== null) return oidc.issuer;
  const saml = await findEnterpriseSaml(database, enterpriseId);
  return saml === null ? null : samlIssuer(saml.entityId);
}

/** Whether two names are the same issuer. */
export function isSameIssuer(one: string, other: string): boolean {
  if (one.startsWith(SAML_ISSUER) || other.startsWith(SAML_ISSUER)) return one === other;
  return new URL(one).href === new URL(other).href;
}

import { type ClientCertificateRecord, clientCertificatesPage } from '../../shared/wire/hosts/client_certificates.ts';
import { secretsPage } from '../../shared/wire/secrets.ts';
import { CliError } from '../exit_codes.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import type { HttpClient } from '../terminal/http_client.ts';

/** A client certificate, with what is known of its secret. */
export interface KnownCertificate {
  readonly record: ClientCertificateRecord;
  readonly isStored: boolean;
  /** When it ends; null if whoever stored it did not say. */
  readonly expiresAt: string | null;
}

/** The user's client certificates; null if the control plane has an earlier version, which has none. */
export async function listClientCertificates(client: HttpClient): Promise<ClientCertificateRecord[] | null> {
  try {
    return await fetchAllPages(client, '/v1/client-certificates', clientCertificatesPage);
  } catch (error) {
    if (error instanceof CliError && error.apiCode === 'not_found') return null;
    throw error;
  }
}

/** Adds to each certificate what its secret says. */
export async function withSecrets(
  client: HttpClient,
  records: readonly ClientCertificateRecord[],
): Promise<KnownCertificate[]> {
  if (records.length === 0) return [];
  const stored = await fetchAllPages(client, '/v1/secrets', secretsPage, { owner: 'personal' });
  const byReference = new Map(stored.map((secret) => [secret.ref, secret]));
  return records.map((record) => {
    const secret = byReference.get(record.credential_ref);
    return { record, isStored: secret !== undefined, expiresAt: secret?.expires_at ?? null };
  });
}

/** What stores a new certificate for a host. */
export function renewal(host: string): string {
  return `svc cert add ${host} --cert FILE --key FILE`;
}

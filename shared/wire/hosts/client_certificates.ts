import { z } from 'zod';
import type { ClientCertificate } from '../../model/host_binding.ts';
import { EFFECTS } from '../../model/host_binding.ts';
import { parseSentReference } from '../../model/vault_path.ts';
import { allowedHostText, credentialRefText, oneOfValues } from '../host_binding_fields.ts';
import { id, page, pageQuery, time } from '../primitives.ts';

/** `POST /v1/client-certificates`: the secret has to have PEM certificates and their PEM key. */
export const clientCertificateInput = z
  .strictObject({
    host: allowedHostText,
    credential_ref: credentialRefText,
    effect: oneOfValues(EFFECTS).optional(),
    /** The host speaks HTTP/2 with clients that offer it; by default, those that also offer HTTP/1.1 get that. */
    http2: z.literal(true).optional(),
  })
  .meta({ id: 'ClientCertificateInput' });
export type ClientCertificateInput = z.output<typeof clientCertificateInput>;

/**
 * A client certificate for one host, as in the API and in snapshots. Strict: a sidecar that does not know a field must not
 * present the certificate, because the field may narrow it.
 */
export const clientCertificateRecord = z
  .strictObject({
    id: id('crt'),
    host: allowedHostText,
    credential_ref: credentialRefText,
    effect: oneOfValues(EFFECTS).optional(),
    http2: z.literal(true).optional(),
    created_at: time,
  })
  .meta({ id: 'ClientCertificate' });
export type ClientCertificateRecord = z.output<typeof clientCertificateRecord>;

/** `GET /v1/client-certificates`: the caller's, in the order of their hosts. */
export const clientCertificatesQuery = z.strictObject(pageQuery);
export const clientCertificatesPage = page(clientCertificateRecord).meta({ id: 'ClientCertificatesPage' });
export const clientCertificateParams = z.strictObject({ id: id('crt') });

/** The certificate for the data plane. Throws on a record that {@link clientCertificateRecord} has not accepted, which is a bug. */
export function toClientCertificate(record: ClientCertificateRecord): ClientCertificate {
  const path = parseSentReference(record.credential_ref);
  if (!path.ok) throw new Error(`the client certificate ${record.id} was not validated`);
  return {
    id: record.id,
    host: record.host,
    credential: { owner: 'personal', path: path.value },
    ...(record.effect !== undefined && { effect: record.effect }),
    ...(record.http2 === true && { http2: true }),
  };
}

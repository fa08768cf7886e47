import {
  clientCertificateInput,
  clientCertificateParams,
  clientCertificateRecord,
  clientCertificatesPage,
  clientCertificatesQuery,
} from '../../../shared/wire/hosts/client_certificates.ts';
import {
  addClientCertificate,
  listClientCertificatePage,
  removeClientCertificate,
} from '../../services/bindings/client_certificates.ts';
import { forUser } from '../http/operation.ts';
import { changeReply, jsonReply } from '../http/replies.ts';

export const postClientCertificate = forUser({
  summary: 'Present a client certificate to a host',
  description:
    'The secret has PEM certificates and their PEM key, which the sidecar alone opens. A host has one record; another one replaces it (200), with an id of its own.',
  body: clientCertificateInput,
  replies: { 201: clientCertificateRecord, 200: clientCertificateRecord },
  async handle({ context, who, body }) {
    return changeReply(await addClientCertificate(context, who, body), ({ record, created }) => ({
      status: created ? 201 : 200,
      json: record,
    }));
  },
});

export const getClientCertificates = forUser({
  summary: 'List your client certificates, without their keys',
  query: clientCertificatesQuery,
  replies: { 200: clientCertificatesPage },
  async handle({ context, who, query }) {
    return jsonReply(await listClientCertificatePage(context, who, query));
  },
});

export const deleteClientCertificate = forUser({
  summary: 'Withdraw a client certificate; connections that it opened end, and its secret stays',
  params: clientCertificateParams,
  replies: { 204: 'Deleted' },
  async handle({ context, who, params }) {
    return changeReply(await removeClientCertificate(context, who, params.id), () => ({ status: 204 }));
  },
});

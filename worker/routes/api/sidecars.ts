import { enrolInput, enrolReply, sidecarParams, sidecarsPage, sidecarsQuery } from '../../../shared/wire/sidecars.ts';
import { enrolSidecar, listSidecarPage, removeSidecar } from '../../services/sidecars/sidecars.ts';
import { forUser } from '../http/operation.ts';
import { createdReply, emptyReply, jsonReply } from '../http/replies.ts';

export const postSidecar = forUser({
  summary: 'Enrol a sidecar',
  description: 'Registers the public halves of its two keys. The sidecar pins the reply.',
  body: enrolInput,
  replies: { 201: enrolReply },
  async handle({ context, who, body }) {
    return createdReply(await enrolSidecar(context, who, body));
  },
});

export const getSidecars = forUser({
  summary: 'List your sidecars',
  query: sidecarsQuery,
  replies: { 200: sidecarsPage },
  async handle({ context, who, query }) {
    return jsonReply(await listSidecarPage(context, who, query));
  },
});

export const deleteSidecar = forUser({
  summary: 'Revoke a sidecar',
  description: 'Its next call is refused, and it deletes the credentials it holds.',
  params: sidecarParams,
  replies: { 204: 'Revoked' },
  async handle({ context, who, params }) {
    return emptyReply(await removeSidecar(context, who, params.id));
  },
});

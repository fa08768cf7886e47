import { ok } from '../../../shared/model/result.ts';
import {
  joinAcceptance,
  joinOffersReply,
  joinRequestInput,
  joinRequestParams,
  joinRequestRecord,
  joinRequestsPage,
  joinRequestsQuery,
  ownJoinRequest,
} from '../../../shared/wire/people/join_requests.ts';
import {
  acceptRequest,
  askToJoin,
  declineRequest,
  listJoinOffers,
  listJoinRequestPage,
  withdrawRequest,
} from '../../sign_in/join_requests.ts';
import { forUser } from '../http/operation.ts';
import { createdReply, emptyReply, jsonReply } from '../http/replies.ts';

export const getJoinOffers = forUser({
  summary: 'List the enterprises that you may ask to join',
  description:
    'Those that have proven the domain of an address that you have proven, and that take requests. Only in a sign-in of your own; empty otherwise.',
  replies: { 200: joinOffersReply },
  async handle({ context, who }) {
    return ok({ status: 200, json: { items: await listJoinOffers(context, who) } });
  },
});

export const postJoinRequest = forUser({
  summary: 'Ask to join an enterprise',
  description:
    'An admin of it decides within 14 days. If its directory has a user for your address, you join at once. Your user here stays.',
  body: joinRequestInput,
  replies: { 201: ownJoinRequest },
  async handle({ context, who, body }) {
    return createdReply(await askToJoin(context, who, body.enterprise_id));
  },
});

export const deleteJoinRequest = forUser({
  summary: 'Take your request to join back',
  params: joinRequestParams,
  replies: { 204: 'Withdrawn' },
  async handle({ context, who, params }) {
    return emptyReply(await withdrawRequest(context, who, params.id));
  },
});

export const getJoinRequests = forUser({
  summary: 'List the requests to join your enterprise',
  description: 'For admins. Newest first; those that ended are listed until 30 days after they were made.',
  query: joinRequestsQuery,
  replies: { 200: joinRequestsPage },
  async handle({ context, who, query }) {
    return jsonReply(await listJoinRequestPage(context, who, query));
  },
});

export const postJoinAcceptance = forUser({
  summary: 'Accept a request to join your enterprise',
  description: 'For admins; only owners accept admins and owners. The address must still be proven, and its domain.',
  params: joinRequestParams,
  body: joinAcceptance,
  isBodyOptional: true,
  replies: { 200: joinRequestRecord },
  async handle({ context, who, params, body }) {
    return jsonReply(await acceptRequest(context, who, params.id, body.role));
  },
});

export const postJoinRefusal = forUser({
  summary: 'Decline a request to join your enterprise',
  description: 'For admins. Whoever asked may ask again 30 days after asking.',
  params: joinRequestParams,
  replies: { 200: joinRequestRecord },
  async handle({ context, who, params }) {
    return jsonReply(await declineRequest(context, who, params.id));
  },
});

import {
  auditSinkInput,
  auditSinkParams,
  auditSinkRecord,
  auditSinksReply,
  createdAuditSink,
  deadLettersPage,
  deadLettersQuery,
  replayReply,
  rotatedSinkSecret,
} from '../../../shared/wire/audit_sinks.ts';
import {
  addSink,
  describeSinks,
  enableSink,
  listDeadLetterPage,
  removeSink,
  replaySink,
  rotateSinkSecret,
} from '../../services/sinks/sinks.ts';
import { forUser } from '../http/operation.ts';
import { createdReply, emptyReply, jsonReply } from '../http/replies.ts';

export const postAuditSink = forUser({
  summary: 'Send the audit events of your enterprise to a receiver',
  description:
    'For admins. Only this reply contains the signing secret. Events are sent in order, at least once, within about a minute.',
  body: auditSinkInput,
  replies: { 201: createdAuditSink },
  async handle({ context, who, body }) {
    return createdReply(await addSink(context, who, body));
  },
});

export const getAuditSinks = forUser({
  summary: 'List the receivers of audit events, and how sending goes',
  description: 'For admins. No reply contains a URL or a secret.',
  replies: { 200: auditSinksReply },
  async handle({ context, who }) {
    return jsonReply(await describeSinks(context, who));
  },
});

export const deleteAuditSink = forUser({
  summary: 'Stop sending audit events to a receiver',
  params: auditSinkParams,
  replies: { 204: 'Removed' },
  async handle({ context, who, params }) {
    return emptyReply(await removeSink(context, who, params.id));
  },
});

export const postAuditSinkRotate = forUser({
  summary: 'Make a new signing secret for a receiver',
  description: 'Only this reply contains it. For a day the secret before it signs too.',
  params: auditSinkParams,
  replies: { 200: rotatedSinkSecret },
  async handle({ context, who, params }) {
    return jsonReply(await rotateSinkSecret(context, who, params.id));
  },
});

export const postAuditSinkEnable = forUser({
  summary: 'Go on sending to a receiver that was disabled, at once',
  params: auditSinkParams,
  replies: { 200: auditSinkRecord },
  async handle({ context, who, params }) {
    return jsonReply(await enableSink(context, who, params.id));
  },
});

export const getAuditSinkDeadLetters = forUser({
  summary: 'List the events that a receiver refused',
  params: auditSinkParams,
  query: deadLettersQuery,
  replies: { 200: deadLettersPage },
  async handle({ context, who, params, query }) {
    return jsonReply(await listDeadLetterPage(context, who, params.id, query));
  },
});

export const postAuditSinkReplay = forUser({
  summary: 'Send the events that a receiver refused again',
  params: auditSinkParams,
  replies: { 200: replayReply },
  async handle({ context, who, params }) {
    return jsonReply(await replaySink(context, who, params.id));
  },
});

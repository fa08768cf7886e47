import {
  tunnelHostInput,
  tunnelHostParams,
  tunnelHostRecord,
  tunnelHostsPage,
  tunnelHostsQuery,
} from '../../../shared/wire/hosts/tunnel_hosts.ts';
import { addTunnelHost, listTunnelHostPage, removeTunnelHost } from '../../services/bindings/tunnel_hosts.ts';
import { forUser } from '../http/operation.ts';
import { changeReply, jsonReply } from '../http/replies.ts';

export const postTunnelHost = forUser({
  summary: 'Carry connections to a host without intercepting them',
  description:
    'A host with a binding or a connector is intercepted nevertheless; one that is named exactly is refused with 409.',
  body: tunnelHostInput,
  replies: { 201: tunnelHostRecord },
  async handle({ context, who, body }) {
    return changeReply(await addTunnelHost(context, who, body), (entry) => ({ status: 201, json: entry }));
  },
});

export const getTunnelHosts = forUser({
  summary: 'List the hosts that are not intercepted',
  query: tunnelHostsQuery,
  replies: { 200: tunnelHostsPage },
  async handle({ context, who, query }) {
    return jsonReply(await listTunnelHostPage(context, who, query));
  },
});

export const deleteTunnelHost = forUser({
  summary: 'Intercept connections to a host again',
  params: tunnelHostParams,
  replies: { 204: 'Deleted' },
  async handle({ context, who, params }) {
    return changeReply(await removeTunnelHost(context, who, params.id), () => ({ status: 204 }));
  },
});

import { moveReply, moveRequest, vaultMove } from '../../../shared/wire/vault_moves.ts';
import { beginMove, receiveMoved } from '../../services/vault/moves/receive_moved.ts';
import { forUser } from '../http/operation.ts';
import { createdReply, jsonReply } from '../http/replies.ts';

export const postVaultMove = forUser({
  summary: 'Begin to move another vault of yours here',
  description:
    'Makes a key to which `svc vault move` seals each value. The reply is signed by the control plane. Personal tokens cannot call this.',
  replies: { 201: vaultMove },
  async handle({ context, who }) {
    return createdReply(await beginMove(context, who));
  },
});

export const postMovedValue = forUser({
  summary: 'Compare or store one value of another vault of yours',
  description:
    'The value, or a digest of it, is a JWE to the key of the ticket. A value is stored only where nothing is; the reply proves what is stored with a digest that only the sender can check.',
  body: moveRequest,
  replies: { 200: moveReply },
  async handle({ context, who, body }) {
    return jsonReply(await receiveMoved(context, who, body));
  },
});

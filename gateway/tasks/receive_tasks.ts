import type { Transport } from '@modelcontextprotocol/client';
import { wrapCreatedTask } from './task_messages.ts';

/** Lets a connected client of the SDK receive the tasks that its server creates. Call it once, after the handshake. */
export function receiveTasks(transport: Transport): void {
  const { onmessage } = transport;
  const receive: NonNullable<Transport['onmessage']> = (message, extra) => onmessage?.(wrapCreatedTask(message), extra);
  Object.assign(transport, { onmessage: receive });
}

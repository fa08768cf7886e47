import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { z } from 'zod';
import type { Finished } from '../../support/program.ts';
import { expectStatus, type Svc } from '../../support/svc.ts';
import { waitFor } from '../../support/wait_for.ts';
import type { DrivenClient } from './driven_clients.ts';
import type { ScriptedModel } from './scripted_model.ts';

export const SERVER = 'notes';
export const WORD = `word-${randomBytes(8).toString('hex')}`;
export const FAREWELL = `farewell-${randomBytes(8).toString('hex')}`;
const DENIED = 'does not allow this tool';
const TOOLS = ['read', 'send', 'extra'].map((name) => ({
  name,
  description: `The tool ${name} of the notes.`,
  inputSchema: { type: 'object', properties: { turn: { type: 'integer' } } },
}));
/** The tools of a client that starts, and after the change. */
export const BEFORE = ['--set', 'read=allow', '--set', 'send=ask', '--set', 'extra=deny'];
export const AFTER = ['--set', 'read=deny', '--set', 'extra=allow'];
const pending = z.object({ items: z.array(z.object({ id: z.string(), tool: z.string() })) });

/** Adds the server of the notes. */
export async function addNotes(svc: Svc, scratch: string): Promise<void> {
  const file = join(scratch, 'tools.json');
  writeFileSync(file, JSON.stringify(TOOLS));
  const command = [process.execPath, join(import.meta.dirname, '..', 'listing_server.cjs'), file, WORD];
  expectStatus(await svc.api('POST', '/v1/mcp-servers', { name: SERVER, command }), 201);
  await svc.ok(['mcp', 'consent', SERVER, '--yes', '--unchecked']);
}

/** A person approves the call of `send` that waits. */
export async function approveSend(svc: Svc): Promise<void> {
  const asked = await waitFor('the approval', async () => {
    const { items } = pending.parse((await svc.api('GET', '/v1/approvals?state=pending')).body);
    return items.find(({ tool }) => tool === 'send');
  });
  await svc.ok(['approvals', 'approve', asked.id]);
}

/** How many requests a client may make with its old tools after it was notified. */
const MOST_TURNS = 5;
/** What the model has the client do: a call, a call that needs an approval, and a call of a tool that is added meanwhile. */
export async function converse(
  { svc, model, client }: { readonly svc: Svc; readonly model: ScriptedModel; readonly client: Promise<Finished> },
  { noticesNew, keepsRemoved }: Pick<DrivenClient, 'noticesNew' | 'keepsRemoved'>,
): Promise<void> {
  let turn = await model.next(client);
  const offers = (name: string) => turn.tools.some((tool) => new RegExp(`${SERVER}_{1,2}${name}$`).test(tool.name));
  expect(['read', 'send', 'extra'].filter((name) => offers(name))).toEqual(['read', 'send']);
  turn.call('read', { turn: 1 });
  turn = await model.next(client);
  expect(turn.body).toContain(`${WORD} read`);
  turn.call('send', { turn: 2 });
  await approveSend(svc);
  turn = await model.next(client);
  expect(turn.body).toContain(`${WORD} send`);

  await svc.ok(['mcp', 'tools', SERVER, ...AFTER]);
  // A refused call shows that the gateway has the change, and has notified the client before it answered.
  let turnsSince = 0;
  for (let at = 3; !offers('extra') && turnsSince < MOST_TURNS; at += 1) {
    turn.call('read', { turn: at });
    turn = await model.next(client);
    if (turn.body.includes(DENIED)) turnsSince += 1;
  }
  expect([offers('extra'), offers('read')]).toEqual([noticesNew, keepsRemoved]);
  if (noticesNew) {
    turn.call('extra', { turn: 0 });
    turn = await model.next(client);
  }
  expect(turn.body.includes(`${WORD} extra`)).toBe(noticesNew);
  turn.answer(FAREWELL);
}

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { run, runOk, shellEnvironment } from '../../support/program.ts';
import { Svc } from '../../support/svc.ts';
import { installMoreClients, MCPORTER, ONLY_HERE, PLAIN, startChatModel, writtenServer } from './more_clients.ts';
import { removeByHand } from './remove_by_hand.ts';
import { addNotes, AFTER, approveSend, BEFORE, converse, FAREWELL, SERVER, WORD } from './notes.ts';
import { ScriptedModel } from './scripted_model.ts';

// MCP clients that svc has no profile for: a person starts them, and their model is an address of this machine.

const NOT_INSTALLED =
  'the clients are not installed: SVC_TEST_INSTALL=1 SVC_TEST_FULL=1 npx vitest run e2e/mcp/clients/more_clients.test.ts';
const model = new ScriptedModel(SERVER);
const hasGateway = (path: string): boolean => readFileSync(path, 'utf8').includes('gateway');
const written = z.object({ mcpServers: z.object({ svc: writtenServer }) });

/** A new home of a person who uses a client that has no profile. */
function plainHome(scratch: string, program: string, more: Readonly<Record<string, string>> = {}) {
  const home = join(scratch, program);
  const folder = join(home, 'work');
  mkdirSync(folder, { recursive: true });
  const PATH = [dirname(process.execPath), process.env['PATH'] ?? ''].join(delimiter);
  return { home, folder, env: { ...shellEnvironment(), HOME: home, TMPDIR: home, PATH, ...ONLY_HERE, ...more } };
}

describe('clients without a profile', () => {
  let programs: string | null;
  let svc: Svc;
  const scratch = mkdtempSync(join(tmpdir(), 'svc-e2e-mcp-clients-'));
  beforeAll(async () => {
    programs = await installMoreClients();
    svc = await Svc.up();
    await addNotes(svc, scratch);
  });
  afterAll(async () => {
    await svc.stop();
    rmSync(scratch, { recursive: true, force: true });
  });

  it.for(PLAIN)(
    '$title lists and calls tools of the gateway, waits for an approval, and notices a change',
    async (plain, { skip }) => {
      if (programs === null) {
        skip(NOT_INSTALLED);
        return;
      }
      const { home, folder, env } = plainHome(scratch, plain.program, plain.env);
      await svc.ok(['mcp', 'tools', SERVER, ...BEFORE]);
      const chat = await startChatModel(model.answer);
      try {
        const shown = await svc.cli(['mcp', 'export', '--home', svc.home, '--client', 'mcporter'], { env });
        const gateway = written.parse(JSON.parse(shown.stdout)).mcpServers.svc;
        const [path, text] = plain.configured;
        mkdirSync(dirname(join(home, path)), { recursive: true });
        writeFileSync(join(home, path), text(chat.url, gateway));
        const args = ['mcp', 'export', '--home', svc.home, '--client', plain.client ?? '', '--write'];
        const added = plain.client === null ? join(home, path) : (await svc.cli(args, { env })).stdout.trim();
        expect(hasGateway(added)).toBe(true);
        const client = run(join(programs, plain.program), plain.args, { env, cwd: folder });
        await converse({ svc, model, client }, plain);
        const done = await client;
        expect({ code: done.code, said: done.stdout }).toEqual({ code: 0, said: expect.stringContaining(FAREWELL) });

        removeByHand(added);
        expect(hasGateway(added)).toBe(false);
        const next = run(join(programs, plain.program), plain.args, { env, cwd: folder });
        const offersGateway = await model.next(next).then(
          () => true,
          () => false,
        );
        expect({ offersGateway, code: (await next).code }).toEqual({ offersGateway: false, code: 0 });
      } finally {
        await chat.close();
      }
    },
  );

  it('MCPorter lists and calls tools of the gateway, waits for an approval, and notices a change', async ({ skip }) => {
    if (programs === null) {
      skip(NOT_INSTALLED);
      return;
    }
    const { folder, env } = plainHome(scratch, MCPORTER.program);
    const program = join(programs, MCPORTER.program);
    const mcporter = async (...args: string[]): Promise<string> =>
      (await runOk(program, args, { env, cwd: folder })).stdout;
    await svc.ok(['mcp', 'tools', SERVER, ...BEFORE]);
    const args = ['mcp', 'export', '--home', svc.home, '--client', MCPORTER.client, '--write'];
    const file = (await svc.cli(args, { env })).stdout.trim();
    const before = await mcporter('list', 'svc');
    expect(['read', 'send', 'extra'].filter((name) => before.includes(`notes__${name}`))).toEqual(['read', 'send']);
    expect(await mcporter('call', 'svc.notes__read', 'turn=1')).toContain(`${WORD} read`);
    const sent = mcporter('call', 'svc.notes__send', 'turn=2');
    await Promise.race([approveSend(svc), sent]);
    expect(await sent).toContain(`${WORD} send`);
    await svc.ok(['mcp', 'tools', SERVER, ...AFTER]);
    const after = await mcporter('list', 'svc');
    expect(['read', 'send', 'extra'].filter((name) => after.includes(`notes__${name}`))).toEqual(['send', 'extra']);
    expect(await mcporter('call', 'svc.notes__extra', 'turn=3')).toContain(`${WORD} extra`);
    await mcporter('config', 'remove', 'svc');
    expect(hasGateway(file)).toBe(false);
  });
});

import { ProtocolError } from '@modelcontextprotocol/client';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { localServer } from '../../shared/mcp/testing/servers.ts';
import { HOST_CALLER } from '../../machine/mcp_caller.ts';
import { DEFAULT_GATEWAY_LIMITS } from '../gateway_limits.ts';
import { PromptRouter } from './prompt_router.ts';
import { SecretMask } from '../servers/secret_mask.ts';

const SECRET = 'S3CR3T-t0ken-of-a-server';

/** A router over one server with one prompt, which completes as `complete` does. */
function routerWith(complete: () => Promise<unknown>): PromptRouter {
  const supervised = { server: localServer() };
  const listing = { supervised, name: 'demo', items: [{ name: 'p' }] };
  const client = { getServerCapabilities: () => ({ completions: {} }), complete };
  type Options = ConstructorParameters<typeof PromptRouter>[0];
  return new PromptRouter({
    fleet: z.custom<Options['fleet']>().parse({ listed: Promise.resolve(), findByToolName: () => supervised }),
    catalog: z.custom<Options['catalog']>().parse({ listOne: () => Promise.resolve(listing) }),
    forwarder: z
      .custom<Options['forwarder']>()
      .parse({ connection: () => Promise.resolve({ client, mask: new SecretMask([SECRET]) }) }),
    limits: DEFAULT_GATEWAY_LIMITS,
  });
}

const completePrompt = (router: PromptRouter): Promise<unknown> =>
  router.complete(
    { ref: { type: 'ref/prompt', name: 'demo__p' }, argument: { name: 'a', value: 'b' } },
    HOST_CALLER,
    new AbortController().signal,
  );

test('masks secrets in completions and in refusals', async () => {
  const values = [`x ${SECRET}`];
  const answer = await completePrompt(routerWith(() => Promise.resolve({ completion: { values } })));
  expect(answer).toEqual({ completion: { values: [`x ${'*'.repeat(SECRET.length)}`] } });
  const refusal = new ProtocolError(-32_000, `bad ${SECRET}`, { SECRET: [SECRET] });
  const refused = await completePrompt(routerWith(() => Promise.reject(refusal))).catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: -32_000, message: expect.stringContaining('bad ***') });
  expect(JSON.stringify([String(refused), refused])).not.toContain(SECRET);
});

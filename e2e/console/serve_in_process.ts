import { Server } from 'node:http';
import { serve } from '@hono/node-server';
import { createApp } from '../../worker/app.ts';
import { fileAssets } from '../../worker/entries/file_assets.ts';
import type { ProgramContext } from '../../worker/installation/program_context.ts';
import { startInProcess } from '../runtimes/in_process.ts';
import type { ControlPlaneUnderTest } from '../runtimes/programs.ts';
import { type Clock, SYSTEM_CLOCK } from '../../worker/kernel/clock.ts';

/** A local control plane whose database a test can reach, for what no call of the API makes: other people. */
export async function serveInProcess(
  clock: Clock = SYSTEM_CLOCK,
): Promise<ControlPlaneUnderTest & { readonly context: ProgramContext }> {
  const control = await startInProcess({ clock });
  const lines: string[] = [];
  const app = createApp({
    context: () => control.context,
    assets: fileAssets(),
    log: (entry) => lines.push(JSON.stringify(entry)),
  });
  const { server, port } = await new Promise<{ server: ReturnType<typeof serve>; port: number }>((resolve) => {
    const made = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, (at) =>
      resolve({ server: made, port: at.port }),
    );
  });
  const stop = async () => {
    if (server instanceof Server) server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await control.stop();
  };
  const { context, localKey } = control;
  return { context, localKey, url: `http://127.0.0.1:${port}`, output: () => lines.join('\n'), stop };
}

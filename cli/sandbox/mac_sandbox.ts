import { copyFileSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Server, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { isExecutable } from '../../machine/is_executable.ts';
import { type FileView, MACHINE_FILES } from '../../sandbox/bubblewrap/file_view.ts';
import { insideUrl } from '../../sandbox/bubblewrap/run_sandbox.ts';
import { chooseVisible, type VisibleFiles } from '../../sandbox/bubblewrap/plan_sandbox.ts';
import { CA_FILE, makeSandboxFolder, PROXY_SOCKET } from '../../sandbox/bubblewrap/sandbox_folder.ts';
import { runChild } from '../../sandbox/engine/run_child.ts';
import type { LaunchProblem } from '../../sandbox/launch/launch_error.ts';
import { findSandboxExec } from '../../sandbox/seatbelt/find_sandbox_exec.ts';
import { MAC_HOME_SECRETS, MAC_PLACES } from '../../sandbox/seatbelt/mac_places.ts';
import { profileText } from '../../sandbox/seatbelt/profile_text.ts';
import type { Result } from '../../shared/model/result.ts';
import type { Call } from '../command_line.ts';
import { homeOf } from '../up/home.ts';
import {
  type HostSandbox,
  insideEnvironment,
  requestFor,
  valueOrNotStarted,
  type WantedSandbox,
} from './host_sandbox.ts';

const listening = z.object({ port: z.number() });

/** The spelling that is on disk: a Mac's file system takes others for it too, and a profile does not. */
const MAC_FILES: FileView = {
  ...MACHINE_FILES,
  realPath: (path) => {
    try {
      return realpathSync.native(path);
    } catch {
      return null;
    }
  },
};

/**
 * Starts nothing yet: opens a port for the session's socket, and returns the sandbox of a command on macOS (decision 0132). The port
 * carries to that socket alone, at which only the session's token opens anything.
 */
export async function openMacSandbox(
  call: Call,
  wanted: WantedSandbox,
  { command, args }: { readonly command: string; readonly args: readonly string[] },
  find: () => Result<string, LaunchProblem> = () => findSandboxExec(isExecutable),
): Promise<HostSandbox> {
  const { context, options, print } = call;
  const program = valueOrNotStarted(find());
  const visible = valueOrNotStarted(chooseVisible(macRequest(call, wanted, command), MAC_FILES, MAC_PLACES));
  for (const warning of visible.parts.warnings) print.warn(warning);
  const folder = makeSandboxFolder(homeOf(context, options));
  const temporary = realpathSync.native(mkdtempSync(join(tmpdir(), 'svc-sandbox-')));
  const clean = (): void => {
    for (const path of [folder.path, temporary]) rmSync(path, { recursive: true, force: true });
  };
  const server = await carryTo(join(folder.path, PROXY_SOCKET)).catch((error: unknown) => {
    clean();
    throw error;
  });
  const connections = new Set<Socket>();
  server.on('connection', (connection: Socket) => {
    connections.add(connection);
    connection.once('close', () => connections.delete(connection));
  });
  const { port } = listening.parse(server.address());
  const profile = join(folder.path, 'profile.sb');
  try {
    writeFileSync(profile, profileOf(visible, temporary, port), { mode: 0o600 });
  } catch (error) {
    server.close();
    clean();
    throw error;
  }
  return {
    field: { mode: 'sandbox-exec', egress: wanted.egress, folder: folder.name },
    enter: (session) => {
      const caBundlePath = join(temporary, CA_FILE);
      copyFileSync(session.caBundlePath, caBundlePath);
      const metadataHost = `127.0.0.1:${port}`;
      return { ...session, proxyUrl: insideUrl(session.proxyUrl, port), caBundlePath, metadataHost };
    },
    run: (env, signals) => {
      const inside = { ...insideEnvironment(env, temporary), TMPDIR: temporary };
      const { workingDirectory: cwd, interactive: terminal } = context;
      return runChild(
        { command: program, args: ['-f', profile, command, ...args], env: inside, cwd, terminal },
        signals,
      );
    },
    close: () => {
      server.close();
      // What the command left behind may hold some open.
      for (const connection of connections) connection.destroy();
      clean();
      return Promise.resolve();
    },
  };
}

function profileOf(visible: VisibleFiles, temporary: string, port: number): string {
  return valueOrNotStarted(profileText({ visible, temporary, readable: [], port }));
}

function macRequest(call: Call, wanted: WantedSandbox, command: string): ReturnType<typeof requestFor> {
  const request = requestFor(call, wanted, { command, folder: null });
  const own = MAC_HOME_SECRETS.map((name) => ({
    path: join(request.home, name),
    name: 'what macOS keeps for programs',
  }));
  return { ...request, guarded: [...request.guarded, ...own] };
}

/** Carries connections of a port of this machine to a socket. */
async function carryTo(socket: string): Promise<Server> {
  const load = createRequire(import.meta.url);
  const { carry }: { readonly carry: (port: number, socket: string) => Promise<Server> } = load(
    '../../sandbox/carrier/carry.cjs',
  );
  return await carry(0, socket);
}

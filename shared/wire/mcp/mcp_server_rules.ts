import type { z } from 'zod';

type Fields = Readonly<Record<string, unknown>>;
type Report = (field: string, message: string) => void;

/** Reports problems between the fields of a server: missing fields of its mode, and fields of the other mode. */
export function checkMcpServer(value: unknown, context: z.core.$RefinementCtx): void {
  if (typeof value !== 'object' || value === null) return;
  const server: Fields = { ...value };
  const report: Report = (field, message) => context.addIssue({ code: 'custom', path: [field], message });
  if (server['mode'] === 'remote') checkRemote(server, report);
  else if (server['mode'] === 'local' || server['mode'] === undefined) checkLocal(server, report);
}

function checkLocal(server: Fields, report: Report): void {
  const { command } = server;
  if (command === undefined || (Array.isArray(command) && command.length === 0)) {
    const hint = isSet(server['url']) ? '; a server that has a url is of mode "remote"' : '';
    report('command', `is missing: a local server needs its program, such as ["npx", "-y", "a-package@1.2.3"]${hint}`);
  }
  for (const field of ['url', 'transport', 'headers']) {
    if (isSet(server[field]))
      report(field, 'belongs to mode "remote", and the mode is "local": remove it or change the mode');
  }
}

function checkRemote(server: Fields, report: Report): void {
  if (!isSet(server['url']))
    report('url', 'is missing: a remote server needs its URL, such as https://mcp.example.com/mcp');
  if (isSet(server['command'])) {
    report('command', 'belongs to mode "local", and the mode is "remote": remove it or change the mode');
  }
  if (isSet(server['env'])) {
    report('env', 'belongs to mode "local", and the mode is "remote": a remote server is given headers');
  }
  if (server['isolation'] === 'container') {
    report('isolation', 'is "container", and a remote server does not run here: leave it out');
  }
}

function isSet(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  return typeof value === 'object' ? Object.keys(value).length > 0 : true;
}

/** The entry that makes a client start the gateway. It has no credential. */
export interface GatewayEntry {
  readonly command: string;
  readonly args: readonly string[];
}

const NAME = 'svc';

/** `command`: the words that call svc, the program and its global options. */
export function gatewayEntry([program = NAME, ...options]: readonly string[]): GatewayEntry {
  return { command: program, args: ['mcp', 'gateway', ...options] };
}

/** The entry in the form of most clients' configuration files, as JSON. */
export function gatewayConfiguration(key: 'mcpServers' | 'servers', entry: GatewayEntry): string {
  return JSON.stringify({ [key]: { [NAME]: entry } }, null, 2);
}

/** A link by which VS Code asks whether to add the gateway. */
export function vscodeInstallLink(entry: GatewayEntry): string {
  return `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name: NAME, ...entry }))}`;
}

/** The same for Cursor. */
export function cursorInstallLink(entry: GatewayEntry): string {
  const config = encodeURIComponent(btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(entry)))));
  return `cursor://anysphere.cursor-deeplink/mcp/install?name=${NAME}&config=${config}`;
}

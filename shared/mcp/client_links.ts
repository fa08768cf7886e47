/** The entry that makes a client start the gateway. It has no credential. */
export const GATEWAY_ENTRY = { command: 'svc', args: ['mcp', 'gateway'] } as const;

const NAME = 'svc';

/** The entry in the form of most clients' configuration files, as JSON. */
export function gatewayConfiguration(key: 'mcpServers' | 'servers'): string {
  return JSON.stringify({ [key]: { [NAME]: GATEWAY_ENTRY } }, null, 2);
}

/** A link by which VS Code asks whether to add the gateway. */
export function vscodeInstallLink(): string {
  return `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name: NAME, ...GATEWAY_ENTRY }))}`;
}

/** The same for Cursor. */
export function cursorInstallLink(): string {
  const config = encodeURIComponent(btoa(JSON.stringify(GATEWAY_ENTRY)));
  return `cursor://anysphere.cursor-deeplink/mcp/install?name=${NAME}&config=${config}`;
}

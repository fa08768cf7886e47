import { err } from '../../model/result.ts';
import type { PackageInEntry, PackageRuntime } from './package_runtime.ts';

/**
 * Not installed. What a bundle runs stands only inside of it, so a preview could show no command, and consent would cover
 * the name of a file; nothing here downloads and unpacks programs outside of a package manager. The refusal has the steps for a person.
 */
export const mcpbRuntime: PackageRuntime = {
  registryType: 'mcpb',
  hints: [],
  program: null,
  registryLabel: null,
  command: (item) => err({ reason: 'bundle_not_supported', message: messageOf(item) }),
};

function messageOf({ package: { identifier, fileSha256 } }: PackageInEntry): string {
  // An address that means nothing to a shell, because a person may paste it.
  const address = /^https:\/\/[\w./+%~-]+$/.test(identifier) ? `download ${identifier}` : 'download it';
  const hash = /^[0-9a-f]{64}$/i.test(fileSha256 ?? '') ? ` (${fileSha256?.toLowerCase()})` : '';
  return (
    'Its package is an MCP bundle: a file that holds a program, and in itself says how that is started, so there is no ' +
    `command to show or to pin. Use another package of the entry, or ${address}, compare its SHA-256${hash}, unpack it, read ` +
    '"mcp_config" in its manifest.json, and add that command: svc mcp add NAME -- node DIRECTORY/server/index.js ' +
    '(the steps are in docs/mcp.md, "Bundles and servers that listen").'
  );
}

import { err } from '../../model/result.ts';
import type { PackageRuntime } from './package_runtime.ts';

const MESSAGE =
  'Its package is an MCP bundle: a file that holds a program, and in itself says how that is started, so there is no ' +
  'command to show or to pin. Use another package of the entry, or unpack the bundle and add its program by hand.';

/**
 * Not installed. What a bundle runs stands only inside of it, so a preview could show no command, and consent would cover
 * the name of a file; nothing here downloads and unpacks programs outside of a package manager.
 */
export const mcpbRuntime: PackageRuntime = {
  registryType: 'mcpb',
  hints: [],
  program: null,
  registryLabel: null,
  command: () => err({ reason: 'bundle_not_supported', message: MESSAGE }),
};

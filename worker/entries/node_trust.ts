import { readFileSync } from 'node:fs';
import tls from 'node:tls';
import { readUpstreamProxy, type UpstreamProxy } from '../../shared/net/upstream_proxy.ts';
import { EXIT_USAGE, ProgramError } from './program_error.ts';

/** The proxy of this machine for outgoing calls; null if there is none. */
export function readProxy(): UpstreamProxy | null {
  const proxy = readUpstreamProxy(process.env);
  if (proxy.ok) return proxy.value;
  throw new ProgramError('invalid_setting', proxy.error, EXIT_USAGE);
}

/**
 * Reads the given roots, and returns the function that makes all outgoing calls trust them, the runtime's and the system's,
 * as the sidecar does.
 */
export function trustRoots(files: readonly string[]): () => void {
  const roots = files.map((file) => readPem(file));
  let isDone = !('setDefaultCACertificates' in tls);
  if (isDone && roots.length > 0) {
    const message = `--upstream-ca needs Node 22.19 or 24.5, and this is ${process.version}: set NODE_EXTRA_CA_CERTS to the file instead`;
    throw new ProgramError('invalid_flag', message, EXIT_USAGE);
  }
  return () => {
    if (isDone) return;
    isDone = true;
    const known = [...tls.getCACertificates('default'), ...tls.getCACertificates('system')];
    tls.setDefaultCACertificates([...new Set([...known, ...roots])]);
  };
}

function readPem(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    throw new ProgramError('invalid_flag', `--upstream-ca ${file}: cannot be read; give a PEM file`, EXIT_USAGE);
  }
}

import type { ContainerRuntime, RuntimeFailure } from '../../sandbox/engine/container_runtime.ts';
import { isInVirtualMachine } from '../../sandbox/engine/engine_host.ts';
import { NODE_IMAGE } from '../../sandbox/engine/node_image.ts';
import type { NamespaceRights } from '../../sandbox/engine/namespace_rights.ts';
import type { Result } from '../../shared/model/result.ts';
import type { Finding } from './finding.ts';

type Engine = Pick<ContainerRuntime, 'endpoint' | 'host'>;

/** What the check of an engine compares it with. */
interface MachineFacts {
  /** The release of this machine's kernel. */
  readonly kernelRelease: string;
  readonly rightsAt: (endpoint: string) => NamespaceRights;
}

/** Who opens the proxy in a sealed container's network (decisions 0018, 0127 and 0182). */
const SEALED_BY: Readonly<Record<NamespaceRights, string>> = {
  root: 'by the sidecar, which runs as root',
  rootless: "by the sidecar, through the rootless engine's user namespace",
  none: 'by a companion container, without root',
};

const IN_VIRTUAL_MACHINE = `by a companion container in its virtual machine, on Node 20 or newer of the image, else of ${NODE_IMAGE}`;

/** Says whether `svc launch` can start containers, and who seals them. Everything else works without an engine. */
export async function engineFinding(engine: Result<Engine, RuntimeFailure>, machine: MachineFacts): Promise<Finding> {
  const check = 'container engine';
  if (!engine.ok) {
    const { message, fixes } = engine.error;
    const fix = fixes[0] ?? 'start Docker';
    return { check, level: 'warning', text: `${message}; svc launch and svc plan run need it`, fix };
  }
  const { endpoint } = engine.value;
  const host = await engine.value.host();
  if (!host.ok) {
    const { message, fixes } = host.error;
    const text = `does not say at ${endpoint} where its containers run: ${message}; svc launch and svc plan run need it`;
    return { check, level: 'warning', text, fix: fixes[0] ?? 'restart the engine' };
  }
  const isThere = isInVirtualMachine(host.value, machine.kernelRelease);
  const by = isThere ? IN_VIRTUAL_MACHINE : SEALED_BY[machine.rightsAt(endpoint)];
  return { check, level: 'ok', text: `answers at ${endpoint}; --egress=sealed works, ${by}` };
}

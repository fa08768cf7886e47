import type { ImageConfig } from '../engine/container_runtime.ts';

/** The Node for an image's svc-mcp. `none`: why there is none, and what to do. */
type McpHelperNode =
  | { readonly kind: 'of_image' }
  | { readonly kind: 'of_svc' }
  | { readonly kind: 'none'; readonly reason: string };

/** The Node that svc runs with, and what it needs from a system. */
export interface OwnNode {
  readonly platform: string;
  /** Node's name for the architecture: `x64`, `arm64`. */
  readonly architecture: string;
  /** False if it is linked to another C library or statically. */
  readonly isGlibc: boolean;
}

const OLDEST_MAJOR = 20;
const ARCHITECTURES: Readonly<Record<string, string>> = { amd64: 'x64', arm64: 'arm64' };

/** The script that probes a base image, for any POSIX shell, with the image's PATH. It prints `name=value` lines. */
export const BASE_PROBE = `version=$(node --version 2>/dev/null) && echo "node=$version"
for loader in /lib64/ld-linux-*.so.* /lib/ld-linux-*.so.*; do
  [ ! -e "$loader" ] || echo libc=glibc
done
for library in /usr/lib/libstdc++.so.6 /usr/lib64/libstdc++.so.6 /usr/lib/*/libstdc++.so.6 /lib/*/libstdc++.so.6; do
  [ ! -e "$library" ] || echo cxx=yes
done
exit 0
`;

/** Chooses from the output of {@link BASE_PROBE}: the base's Node if it is new enough, else ours if it can run there. */
export function mcpHelperNode(
  probe: string,
  { architecture }: Pick<ImageConfig, 'architecture'>,
  own: OwnNode,
): McpHelperNode {
  const lines = probe.split('\n');
  const version = lines.find((line) => line.startsWith('node='))?.slice('node='.length) ?? '';
  if (Number(/^v(\d{1,3})\./.exec(version)?.[1] ?? 0) >= OLDEST_MAJOR) return { kind: 'of_image' };
  const reason = findMisfit(lines, architecture, own);
  if (reason === null) return { kind: 'of_svc' };
  const fix = `Add Node ${OLDEST_MAJOR} or newer to the base and build again, or use $SVC_URL/v1/mcp, which needs no Node.`;
  return { kind: 'none', reason: `${reason}. ${fix}` };
}

function findMisfit(lines: readonly string[], architecture: string, own: OwnNode): string | null {
  const without = "the base has no Node that is new enough, and svc's own Node cannot run in it";
  if (own.platform !== 'linux' || !own.isGlibc) return `${without}: it is not one for Linux with glibc`;
  if (ARCHITECTURES[architecture] !== own.architecture) return `${without}: it is for another processor`;
  if (!lines.includes('libc=glibc')) return `${without}: the base has no glibc (Alpine has musl)`;
  return lines.includes('cxx=yes') ? null : `${without}: the base has no libstdc++`;
}

import type { ImageConfig } from '../engine/container_runtime.ts';

/** Which Node an image's svc-mcp is to run with. `none`: in words, why there is none, and what to do. */
export type McpHelperNode =
  | { readonly kind: 'of_image' }
  | { readonly kind: 'of_svc' }
  | { readonly kind: 'none'; readonly reason: string };

/** The Node that svc runs with, as another system could run it. */
export interface OwnNode {
  readonly platform: string;
  /** As Node names it: `x64`, `arm64`. */
  readonly architecture: string;
  /** False where it is linked to another C library, or to none. */
  readonly isGlibc: boolean;
}

const OLDEST_MAJOR = 20;
const ARCHITECTURES: Readonly<Record<string, string>> = { amd64: 'x64', arm64: 'arm64' };

/** The script that looks at a base, for any POSIX shell, with the image's own PATH. It prints `name=value` lines. */
export const BASE_PROBE = `version=$(node --version 2>/dev/null) && echo "node=$version"
for loader in /lib64/ld-linux-*.so.* /lib/ld-linux-*.so.*; do
  [ ! -e "$loader" ] || echo libc=glibc
done
for library in /usr/lib/libstdc++.so.6 /usr/lib64/libstdc++.so.6 /usr/lib/*/libstdc++.so.6 /lib/*/libstdc++.so.6; do
  [ ! -e "$library" ] || echo cxx=yes
done
exit 0
`;

/** Decides by what {@link BASE_PROBE} printed of a base: its own Node where that is new enough, else ours where it runs. */
export function mcpHelperNode(
  probe: string,
  { architecture }: Pick<ImageConfig, 'architecture'>,
  own: OwnNode,
): McpHelperNode {
  const lines = probe.split('\n');
  const version = lines.find((line) => line.startsWith('node='))?.slice('node='.length) ?? '';
  if (Number(/^v(\d{1,3})\./.exec(version)?.[1] ?? 0) >= OLDEST_MAJOR) return { kind: 'of_image' };
  const reason = misfit(lines, architecture, own);
  if (reason === null) return { kind: 'of_svc' };
  const fix = `Add Node ${OLDEST_MAJOR} or newer to the base and build again; or programs in it use $SVC_URL/v1/mcp, which needs none.`;
  return { kind: 'none', reason: `${reason}. ${fix}` };
}

function misfit(lines: readonly string[], architecture: string, own: OwnNode): string | null {
  const without = 'the base has no Node that is new enough, and the one of svc does not run in it';
  if (own.platform !== 'linux' || !own.isGlibc) return `${without}: it is not one for Linux with glibc`;
  if (ARCHITECTURES[architecture] !== own.architecture) return `${without}: it is for another processor`;
  if (!lines.includes('libc=glibc')) return `${without}: the base has no glibc (Alpine has musl)`;
  return lines.includes('cxx=yes') ? null : `${without}: the base has no libstdc++`;
}

import type { Seeded } from './console_world.ts';

/** Every page of the console, by the name of its picture: a path, made of what there is to show. */
const PATHS = {
  overview: () => '/',
  approvals: () => '/approvals',
  approvals_all: () => '/approvals?state=all',
  audit: () => '/audit',
  audit_event: ({ eventId }: Seeded) => `/audit/${eventId}`,
  audit_verified: () => '/audit/verify',
  audit_bad_filter: () => '/audit?since=yesterday',
  mcp_servers: () => '/mcp-servers',
  secrets: () => '/secrets',
  secret_new: () => '/secrets/new',
  secret_delete: () => '/secrets/delete?path=user/github&owner=personal',
  bindings: () => '/bindings?method=POST&url=https%3A%2F%2Fapi.github.com%2Fuser',
  binding: ({ bindingId }: Seeded) => `/bindings/${bindingId}`,
  binding_new: () => '/bindings/new?scheme=header-template',
  binding_template: () => '/bindings/new?from=github-git',
  binding_delete: ({ bindingId }: Seeded) => `/bindings/${bindingId}/delete`,
  identities: () => '/identities',
  device: () => '/device',
  missing_binding: () => '/bindings/bnd_nothing',
} as const satisfies Readonly<Record<string, (seeded: Seeded) => string>>;

export type ConsolePage = keyof typeof PATHS;
export const CONSOLE_PAGES = Object.keys(PATHS).filter((name): name is ConsolePage => name in PATHS);

/** The path of a page. */
export function consolePath(name: ConsolePage, seeded: Seeded): string {
  return PATHS[name](seeded);
}

import type { Page, Request } from 'playwright-core';
import { ITEMS_SPEC } from '../runtimes/connector_samples.ts';
import type { EverythingSeeded } from './console_seeds.ts';
import { PLANTED_SECRET } from './console_world.ts';
import { WEATHER } from './marketplace_entries.ts';

/** The values for forms. */
export interface FormSubjects extends EverythingSeeded {
  /** For a program that waits to be signed in. */
  readonly userCode: string;
}

/** A form with its input. */
interface ConsoleForm {
  /** The form's page; null for one on the page that the previous form led to. */
  readonly at: ((subjects: FormSubjects) => string) | null;
  /** Typed, chosen or ticked values, by field name. */
  readonly fill?: (subjects: FormSubjects) => Readonly<Record<string, string>>;
  readonly press: string | RegExp;
  /** Text on the next page. */
  readonly shows: string;
}

const settings = `/mcp-servers/install?registry_id=${encodeURIComponent(WEATHER)}&version=1.2.2&step=settings`;
const SPEC = JSON.stringify({ ...ITEMS_SPEC, connector: { ...ITEMS_SPEC.connector, fqn: 'acme/form' } });

/** A form that asks to type a name before something is destroyed. */
const confirmedForm = (at: ConsoleForm['at'], name: string, press: string, shows: string): ConsoleForm => ({
  at,
  fill: () => ({ [`Type ${name} to confirm`]: name }),
  press,
  shows,
});

/**
 * The forms of local mode that need what no walk has: events that are days old (retention.test.ts), and somebody who is signed in
 * at a remote MCP server (own_servers.test.ts). Both are sent there without scripts.
 */
export const FORMS_OF_OTHER_TESTS: readonly string[] = [
  '/audit/retention/remove',
  '/mcp-servers/{id}/authorize/forget',
];

/** Each other form of the console in local mode, by the route that receives it, in an order in which nothing is deleted too early. */
export const CONSOLE_FORMS: Readonly<Record<string, ConsoleForm>> = {
  '/approvals/{id}': { at: () => '/approvals', press: /^Deny acme\/items/, shows: 'Denied' },
  '/approval-grants/{id}/revoke': {
    at: () => '/approvals?state=grants',
    press: /^Revoke acme\/items/,
    shows: 'The grant is revoked',
  },
  '/approval-rules': {
    at: () => '/approval-rules',
    fill: () => ({ 'Connector or server': 'elsewhere/*', 'Operation or tool': 'delete-*' }),
    press: 'Add the rule',
    shows: 'The rule holds from now on',
  },
  '/approval-rules/{id}/remove': { at: null, press: 'Remove elsewhere/* delete-*', shows: 'The rule is removed' },
  '/audit/views': {
    at: () => '/audit?host=github',
    fill: () => ({ 'Save these filters as a view': 'of GitHub' }),
    press: 'Save',
    shows: 'The view is saved',
  },
  '/audit/views/forget': { at: null, press: 'Forget the view of GitHub', shows: 'The view is forgotten' },
  '/theme': { at: () => '/secrets', press: 'Dark', shows: 'Write-only' },
  '/secrets': {
    at: () => '/secrets/new',
    fill: () => ({ Path: 'user/form', Value: PLANTED_SECRET }),
    press: 'Store',
    shows: 'The secret is stored',
  },
  '/secrets/sources': {
    at: () => '/secrets/sources/new?kind=client_credentials',
    fill: () => ({
      Path: 'ci/form',
      'Token URL': 'https://id.example.test/token',
      'Client id': 'form',
      Key: PLANTED_SECRET,
    }),
    press: 'Store',
    shows: 'The source is stored',
  },
  // No provider has the name of the test.
  '/secrets/source': { at: null, press: 'Ask the provider', shows: 'gives no value' },
  '/secrets/delete': confirmedForm(
    () => '/secrets/delete?path=user/form&owner=personal',
    'user/form',
    'Delete it',
    'The secret is deleted',
  ),
  '/bindings': {
    at: () => '/bindings/new?scheme=bearer',
    fill: () => ({ Host: 'forms.example.test', Credential: 'vault://user/github' }),
    press: 'Bind',
    shows: 'The binding is in force',
  },
  '/client-certificates': {
    at: () => '/client-certificates',
    fill: () => ({ Host: 'mtls-form.example.test', Secret: 'vault://user/github' }),
    press: 'Add the certificate',
    shows: 'gets the certificate from now on',
  },
  '/client-certificates/{id}/delete': confirmedForm(
    ({ clientCertificateId }) => `/client-certificates/${clientCertificateId}/delete`,
    'mtls.example.test',
    'Remove it',
    'The certificate is withdrawn',
  ),
  '/tunnel-hosts': {
    at: () => '/tunnel-hosts',
    fill: () => ({ Host: 'pinned-form.example.test' }),
    press: 'Carry its connections unread',
    shows: 'carried unread from now on',
  },
  '/tunnel-hosts/{id}/delete': confirmedForm(
    ({ tunnelHostId }) => `/tunnel-hosts/${tunnelHostId}/delete`,
    'pinned.example.test',
    'Remove it',
    'intercepted again',
  ),
  '/bindings/{id}/edit': {
    at: ({ bindingId }) => `/bindings/${bindingId}/edit`,
    fill: () => ({ Effect: 'write' }),
    press: 'Save',
    shows: 'The change is in force',
  },
  '/bindings/{id}/delete': confirmedForm(
    ({ bindingId }) => `/bindings/${bindingId}/delete`,
    'api.github.com',
    'Delete it',
    'The binding is deleted',
  ),
  '/mcp-rules': {
    at: () => '/mcp-rules',
    fill: () => ({ 'Only these:': 'yes', Sources: 'npm:@elsewhere/*' }),
    press: 'Show what it stops',
    shows: 'would be stopped',
  },
  '/mcp-servers/install': {
    at: () => settings,
    fill: () => ({ region: 'eu', UNIT: 'celsius', 'Name (optional)': 'by-form' }),
    press: 'Install',
    shows: 'Nothing of it runs yet',
  },
  '/mcp-servers': {
    at: () => '/mcp-servers/new',
    fill: () => ({ Name: 'own', Program: 'npx', Arguments: '-y\na-package@1.2.3' }),
    press: 'Register',
    shows: 'Nothing of it runs yet',
  },
  '/mcp-servers/{id}/edit': {
    at: ({ remoteId }) => `/mcp-servers/${remoteId}/edit`,
    fill: () => ({ URL: 'https://other.example.test/mcp' }),
    press: 'Save',
    shows: 'The configuration is saved',
  },
  '/mcp-servers/{id}/authorize': {
    at: ({ remoteId }) => `/mcp-servers/${remoteId}/authorize`,
    press: 'Sign in',
    // No test has a server at the address.
    shows: 'other.example.test',
  },
  '/mcp-servers/{id}/enabled': {
    at: ({ mcpId }) => `/mcp-servers/${mcpId}`,
    press: 'Disable',
    shows: 'The server is disabled',
  },
  '/mcp-servers/{id}/tools': {
    at: ({ mcpId }) => `/mcp-servers/${mcpId}`,
    fill: () => ({ Denied: 'delete_*' }),
    press: 'Save the tools',
    shows: 'The tools are saved',
  },
  '/mcp-servers/{id}/tools/accept': {
    at: ({ mcpId }) => `/mcp-servers/${mcpId}/tools`,
    press: /^Accept forecast/,
    shows: 'gateways list and call them from now on',
  },
  '/mcp-servers/{id}/tools/choice': {
    at: ({ mcpId }) => `/mcp-servers/${mcpId}/tools`,
    press: /^Ask now/,
    shows: 'The tools are saved',
  },
  '/mcp-servers/{id}/credentials': {
    at: ({ mcpId }) => `/mcp-servers/${mcpId}/credentials?name=API_KEY`,
    fill: () => ({ API_KEY: PLANTED_SECRET }),
    press: 'Store',
    shows: 'The value is never shown again',
  },
  '/mcp-servers/{id}/credentials/delete': confirmedForm(
    ({ mcpId }) => `/mcp-servers/${mcpId}/credentials/delete?name=API_KEY`,
    'API_KEY',
    'Remove it',
    'The stored value is deleted',
  ),
  '/mcp-servers/{id}/upgrade': {
    at: ({ mcpId }) => `/mcp-servers/${mcpId}/upgrade`,
    fill: () => ({ LANGUAGE: 'en' }),
    press: 'Update',
    shows: 'The server is updated',
  },
  '/mcp-servers/{id}/rollback': {
    at: ({ mcpId }) => `/mcp-servers/${mcpId}/rollback?revision=1`,
    press: 'Return to it',
    shows: 'The earlier configuration is in force again',
  },
  '/mcp-servers/{id}/delete': confirmedForm(
    ({ mcpId }) => `/mcp-servers/${mcpId}/delete`,
    'walked',
    'Delete it',
    'The server and its credentials are deleted',
  ),
  '/services/{name}': {
    at: () => '/services/vercel',
    fill: () => ({ 'The API key or token': PLANTED_SECRET }),
    press: 'Connect Vercel REST API',
    shows: 'Connected',
  },
  '/services/{name}/test': { at: null, press: 'Make a test call', shows: 'There is no reply' },
  '/connectors': {
    at: () => '/connectors/install',
    fill: () => ({ 'Connector spec': SPEC }),
    press: 'Install',
    shows: 'The connector is installed',
  },
  '/connectors/{id}/credential': {
    at: ({ connectorId }) => `/connectors/${connectorId}`,
    fill: () => ({ 'New API key': PLANTED_SECRET }),
    press: 'Replace',
    shows: 'The credential is stored',
  },
  '/connectors/{id}/authorize': {
    at: ({ oauthId }) => `/connectors/${oauthId}`,
    press: 'Authorise with a code',
    // No test has a provider at the address that the spec names.
    shows: 'auth.example.test',
  },
  '/connectors/{id}/credential/delete': confirmedForm(
    ({ oauthId }) => `/connectors/${oauthId}/credential/delete`,
    'acme/calendar',
    'Delete it',
    'The credential is deleted',
  ),
  '/connectors/{id}/remove': confirmedForm(
    ({ connectorId }) => `/connectors/${connectorId}/remove`,
    'acme/items',
    'Remove it',
    'The connector is removed',
  ),
  '/sidecars/{id}/revoke': confirmedForm(
    ({ sidecarId }) => `/sidecars/${sidecarId}/revoke`,
    'laptop',
    'Revoke it',
    'The sidecar is revoked',
  ),
  '/account/sign-ins/{id}/end': {
    at: ({ signInId }) => `/account/sign-ins/${signInId}/end`,
    press: 'Sign it out',
    shows: 'It is signed out',
  },
  '/account/tokens': {
    at: () => '/account/tokens/new',
    fill: () => ({ Name: 'form', 'secrets:read': 'yes' }),
    press: 'Create',
    shows: 'Copy the token now',
  },
  '/account/tokens/{id}/revoke': confirmedForm(
    ({ tokenId }) => `/account/tokens/${tokenId}/revoke`,
    'ci',
    'Revoke it',
    'The token is revoked',
  ),
  '/members/{id}/role': {
    at: ({ memberId }) => `/members/${memberId}`,
    fill: () => ({ admin: 'yes' }),
    press: 'Change the role',
    shows: 'The role is changed',
  },
  '/members/{id}/suspend': confirmedForm(
    ({ memberId }) => `/members/${memberId}/suspend`,
    'pat@acme.test',
    'Suspend',
    'The member is suspended',
  ),
  '/members/{id}/resume': {
    at: ({ memberId }) => `/members/${memberId}`,
    press: 'Resume',
    shows: 'The member may sign in again',
  },
  '/enterprise': {
    at: () => '/enterprise',
    fill: () => ({ Name: 'Acme' }),
    press: 'Save the settings',
    shows: 'The settings are in force',
  },
  '/device': {
    at: () => '/device',
    fill: ({ userCode }) => ({ 'Type the code that svc login shows in your own terminal.': userCode }),
    press: 'Continue',
    shows: 'Sign this program in as you?',
  },
  '/device/decide': { at: null, press: 'Deny', shows: 'Denied' },
  '/auth/logout': { at: () => '/', press: 'Sign out', shows: 'Sign in' },
};

/** Fills in and sends a form; returns the URL it was sent to, and the text of the next page. */
export async function submitForm(
  page: Page,
  { fill, press }: ConsoleForm,
  subjects: FormSubjects,
): Promise<{ readonly path: string; readonly text: string }> {
  for (const [label, value] of Object.entries(fill?.(subjects) ?? {})) await enterField(page, label, value);
  const button = page.getByRole('button', { name: press, exact: true }).filter({ visible: true }).first();
  const [sent] = await Promise.all([page.waitForRequest(isSubmission), page.waitForEvent('load'), button.click()]);
  return { path: new URL(sent.url()).pathname, text: await page.locator('main').innerText() };
}

function isSubmission(request: Request): boolean {
  return request.method() === 'POST' && request.isNavigationRequest();
}

/** Types, chooses or ticks a value, as the field has it. */
export async function enterField(page: Page, label: string, value: string): Promise<void> {
  const field = page.getByLabel(label, { exact: true });
  const kind = await field.getAttribute('type');
  const isChoice = (await field.and(page.locator('select')).count()) > 0;
  if (kind === 'radio' || kind === 'checkbox') await field.check();
  else if (isChoice) await field.selectOption(value);
  else await field.fill(value);
}

/** Whether a route accepts what was sent to this path. */
export function takes(route: string, path: string): boolean {
  return new RegExp(`^${route.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path);
}

import type { PageEntry } from './console.ts';
import { askSignOut, getAccount, submitSignOut } from './console_account.ts';
import {
  askCredentialDeletion,
  submitCredential,
  submitCredentialDeletion,
  submitDeviceAuthorisation,
} from './console_connector_credentials.ts';
import {
  askRemoval,
  getConnectorPage,
  getConnectorsPage,
  getSpecForm,
  submitConnectorRemoval,
  submitSpec,
} from './console_connectors.ts';
import { getEnterprisePage, submitSettings } from './console_enterprise.ts';
import {
  askSuspension,
  getMemberPage,
  getMembersPage,
  submitResumption,
  submitRole,
  submitSuspension,
} from './console_members.ts';
import { askSidecarRevocation, getSidecarsPage, submitSidecarRevocation } from './console_sidecars.ts';
import { askTokenRevocation, getNewToken, submitToken, submitTokenRevocation } from './console_tokens.ts';

/** The pages of connectors, of who is signed in and of the enterprise. */
export const CONSOLE_ACCESS_PAGES: readonly PageEntry[] = [
  ['get', '/connectors', getConnectorsPage],
  ['get', '/connectors/install', getSpecForm],
  ['post', '/connectors', submitSpec],
  ['get', '/connectors/{id}', getConnectorPage],
  ['get', '/connectors/{id}/remove', askRemoval],
  ['post', '/connectors/{id}/remove', submitConnectorRemoval],
  ['post', '/connectors/{id}/credential', submitCredential],
  ['get', '/connectors/{id}/credential/delete', askCredentialDeletion],
  ['post', '/connectors/{id}/credential/delete', submitCredentialDeletion],
  ['post', '/connectors/{id}/authorize', submitDeviceAuthorisation],

  ['get', '/sidecars', getSidecarsPage],
  ['get', '/sidecars/{id}/revoke', askSidecarRevocation],
  ['post', '/sidecars/{id}/revoke', submitSidecarRevocation],
  ['get', '/account', getAccount],
  ['get', '/account/sign-ins/{id}/end', askSignOut],
  ['post', '/account/sign-ins/{id}/end', submitSignOut],
  ['get', '/account/tokens/new', getNewToken],
  ['post', '/account/tokens', submitToken],
  ['get', '/account/tokens/{id}/revoke', askTokenRevocation],
  ['post', '/account/tokens/{id}/revoke', submitTokenRevocation],

  ['get', '/members', getMembersPage],
  ['get', '/members/{id}', getMemberPage],
  ['post', '/members/{id}/role', submitRole],
  ['get', '/members/{id}/suspend', askSuspension],
  ['post', '/members/{id}/suspend', submitSuspension],
  ['post', '/members/{id}/resume', submitResumption],
  ['get', '/enterprise', getEnterprisePage],
  ['post', '/enterprise', submitSettings],
];

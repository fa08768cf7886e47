import type { PageEntry } from './console.ts';
import {
  askDisconnect,
  askSignOut,
  getAccount,
  submitDisconnect,
  submitSignOut,
  getNewToken,
  submitToken,
  tokenRevocation,
} from './console_account.ts';
import {
  credentialDeletion,
  submitCredential,
  submitDeviceAuthorisation,
  connectorRemoval,
  getConnectorPage,
  getConnectorsPage,
  getSpecForm,
  submitSpec,
} from './console_connectors.ts';
import { getEnterprisePage, submitSettings } from './console_enterprise.ts';
import { getMemberPage, getMembersPage, submitResumption, submitRole, suspension } from './console_members.ts';
import { getSidecarsPage, sidecarRevocation } from './console_sidecars.ts';

/** The pages of connectors, the account and the enterprise. */
export const CONSOLE_ACCESS_PAGES: readonly PageEntry[] = [
  ['get', '/connectors', getConnectorsPage],
  ['get', '/connectors/install', getSpecForm],
  ['post', '/connectors', submitSpec],
  ['get', '/connectors/{id}', getConnectorPage],
  ['get', '/connectors/{id}/remove', connectorRemoval.ask],
  ['post', '/connectors/{id}/remove', connectorRemoval.submit],
  ['post', '/connectors/{id}/credential', submitCredential],
  ['get', '/connectors/{id}/credential/delete', credentialDeletion.ask],
  ['post', '/connectors/{id}/credential/delete', credentialDeletion.submit],
  ['post', '/connectors/{id}/authorize', submitDeviceAuthorisation],

  ['get', '/sidecars', getSidecarsPage],
  ['get', '/sidecars/{id}/revoke', sidecarRevocation.ask],
  ['post', '/sidecars/{id}/revoke', sidecarRevocation.submit],
  ['get', '/account', getAccount],
  ['get', '/account/sign-ins/{id}/end', askSignOut],
  ['post', '/account/sign-ins/{id}/end', submitSignOut],
  ['get', '/account/mcp-clients/{id}/end', askDisconnect],
  ['post', '/account/mcp-clients/{id}/end', submitDisconnect],
  ['get', '/account/tokens/new', getNewToken],
  ['post', '/account/tokens', submitToken],
  ['get', '/account/tokens/{id}/revoke', tokenRevocation.ask],
  ['post', '/account/tokens/{id}/revoke', tokenRevocation.submit],

  ['get', '/members', getMembersPage],
  ['get', '/members/{id}', getMemberPage],
  ['post', '/members/{id}/role', submitRole],
  ['get', '/members/{id}/suspend', suspension.ask],
  ['post', '/members/{id}/suspend', suspension.submit],
  ['post', '/members/{id}/resume', submitResumption],
  ['get', '/enterprise', getEnterprisePage],
  ['post', '/enterprise', submitSettings],
];

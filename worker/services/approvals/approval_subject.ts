import type { AuditEventData } from '../../../shared/model/audit_event.ts';
import type { ApprovalRecord } from '../../../shared/wire/approvals.ts';
import type { ApprovalRow } from '../../store/approvals.ts';
import type { ConnectorSummaryRow } from '../../store/connectors.ts';
import type { McpServerRow } from '../../store/mcp/mcp_servers.ts';

/** The subject of an approval as it was when the approval was requested. */
export type ApprovalSubject = Pick<
  ApprovalRow,
  'subject' | 'subjectId' | 'subjectOwnerId' | 'subjectName' | 'subjectVersion' | 'action'
>;

export function connectorSubject(connector: ConnectorSummaryRow, operation: string): ApprovalSubject {
  const { id: subjectId, ownerId: subjectOwnerId, fqn: subjectName, version: subjectVersion } = connector;
  return { subject: 'connector', subjectId, subjectOwnerId, subjectName, subjectVersion, action: operation };
}

/** The empty string for a server without a version. */
export function toolSubject(server: McpServerRow, version: string | null, tool: string): ApprovalSubject {
  const { id: subjectId, ownerId: subjectOwnerId, name: subjectName } = server;
  const subjectVersion = version ?? '';
  return { subject: 'mcp_server', subjectId, subjectOwnerId, subjectName, subjectVersion, action: tool };
}

type SubjectFields = Pick<
  ApprovalRecord,
  | 'connector_id'
  | 'connector_fqn'
  | 'connector_version'
  | 'operation'
  | 'mcp_server_id'
  | 'mcp_server'
  | 'mcp_server_version'
  | 'tool'
>;

const NO_CONNECTOR = { connector_id: null, connector_fqn: null, connector_version: null, operation: null };
const NO_SERVER = { mcp_server_id: null, mcp_server: null, mcp_server_version: null, tool: null };

/** The subject in the API's format. */
export function subjectFields(row: ApprovalSubject): SubjectFields {
  const { subject, subjectId, subjectName, subjectVersion, action } = row;
  if (subject === 'connector') {
    const connector = { connector_id: subjectId, connector_fqn: subjectName, connector_version: subjectVersion };
    return { ...connector, operation: action, ...NO_SERVER };
  }
  const version = subjectVersion === '' ? null : subjectVersion;
  const server = { mcp_server_id: subjectId, mcp_server: subjectName, mcp_server_version: version };
  return { ...NO_CONNECTOR, ...server, tool: action };
}

/** The subject in the database's format. */
export function subjectEventData(row: ApprovalSubject): AuditEventData {
  const { subject, subjectId, subjectName, subjectVersion, action } = row;
  if (subject === 'connector') {
    return {
      'svc.connector.fqn': subjectName,
      'svc.connector.version': subjectVersion,
      'svc.connector.operation': action,
    };
  }
  return {
    'svc.mcp.server': subjectName,
    'svc.mcp.server_id': subjectId,
    ...(subjectVersion !== '' && { 'svc.mcp.version': subjectVersion }),
    'svc.mcp.tool': action,
  };
}

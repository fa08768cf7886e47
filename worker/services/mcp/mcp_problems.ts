import { apiError, type ApiError } from '../../../shared/wire/errors.ts';

interface Named {
  readonly id: string;
  readonly name: string;
}

export function mcpNothingStored(server: Named): ApiError {
  return apiError(
    'binding_required',
    `${server.name} is not authorised: ${authorisationHint(server)}`,
    details(server),
  );
}

export function mcpReauthorisationRequired(server: Named): ApiError {
  const message = `the authorisation of ${server.name} is no longer accepted: ${authorisationHint(server)}`;
  return apiError('reauthorisation_required', message, details(server));
}

function authorisationHint({ id, name }: Named): string {
  return `run "svc mcp authorize ${name}", or POST /v1/mcp-servers/${id}/authorize`;
}

function details({ id }: Named): Readonly<Record<string, unknown>> {
  return { server_id: id };
}

import { type ConnectorSpec, type Operation, operationHosts, runnableOperations } from '../model/connector.ts';
import type { ListedOperation } from '../wire/connectors/connector_operations.ts';
import { graphqlWords } from '../connect/graphql_operation.ts';
import { jsonWords } from '../connect/json_operation.ts';
import { operationInputs } from '../connect/input_schema.ts';

/** The operations of a connector that a program can run by name. */
export function listOperations(spec: ConnectorSpec): ListedOperation[] {
  return runnableOperations(spec).map((operation) => {
    const { schema, inputNames, hostProperty } = operationInputs(spec, operation);
    return {
      connector_fqn: spec.fqn,
      connector_title: spec.title,
      operation: operation.name,
      summary: operation.summary,
      description: describe(operation),
      effect: operation.effect,
      approval: operation.approval,
      hosts: [...operationHosts(spec, operation)],
      input_schema: { ...schema },
      input_names: { ...inputNames },
      host_property: hostProperty,
    };
  });
}

/** A caller that runs it by name has to know which documents or bodies it accepts. */
function describe({ description, graphql, json }: Operation): string {
  if (graphql === undefined && json === undefined) return description;
  const words =
    graphql === undefined ? `Its JSON body: ${jsonWords(json)}.` : `Its GraphQL document: ${graphqlWords(graphql)}.`;
  return description === '' ? words : `${description}\n\n${words}`;
}

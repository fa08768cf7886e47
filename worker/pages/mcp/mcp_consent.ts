import { html } from 'hono/html';
import { commandDangers } from '../../../shared/mcp/command_dangers.ts';
import { mcpReference } from '../../../shared/mcp/references.ts';
import type { McpServerRecord } from '../../../shared/wire/mcp/mcp_servers.ts';
import { codeBlock } from '../components/code_block.ts';
import { definitionList } from '../components/definition_list.ts';
import { foreignCommand } from '../components/foreign_command.ts';
import { foreignText } from '../components/foreign_text.ts';
import type { Html } from '../frame/html.ts';

/**
 * What a machine asks before it starts a local server, and the command for it: consent is given only on the machine.
 */
export function consentPanel(server: McpServerRecord): Html {
  const { id, name, command, env, version, isolation, registry_id: registryId } = server;
  const variables = Object.entries(env);
  const dangers = commandDangers(command, env);
  const isUnchecked = dangers.some(({ severity }) => severity === 'unchecked');
  return html`<section class="panel" aria-labelledby="machine-title">
    <h2 id="machine-title">On each machine, once</h2>
    <p>This shows the command and asks for consent. You can consent only on the machine itself.</p>
    ${codeBlock(`svc mcp consent ${name}`)}
    ${
      isUnchecked
        ? html`<p>
            <strong>Nobody checked this command.</strong> You must type the server’s name to accept exactly this:
          </p>`
        : html`<p>It asks <strong>“Run this on this machine with your rights?”</strong> about exactly this:</p>`
    }
    ${foreignCommand(command.map((word) => nameReferences(id, word)))}
    ${definitionList([
      [
        'With',
        variables.length === 0
          ? null
          : html`<ul class="plain">
              ${variables.map(([key, value]) => html`<li><code>${foreignText(key)}=${foreignText(nameReferences(id, value))}</code></li>`)}
            </ul>`,
      ],
      ['Version', version === null ? 'none is named' : foreignText(version)],
      ['From', registryId === null ? 'registered by hand' : html`the registry: ${foreignText(registryId)}`],
      ['Isolation', isolation === 'container' ? 'in a container or a sandbox' : 'a program with your rights'],
      ...dangers.map(
        ({ severity, message }) =>
          [severity === 'unchecked' ? 'Unchecked' : 'Warning', foreignText(`it ${message}`)] as const,
      ),
    ])}
    <p class="quiet small">
      If any of this changes, the server stops on the machine until somebody consents there again.
    </p>
  </section>`;
}

/** A reference, shown as its credential's name in braces. */
export function nameReferences(serverId: string, text: string): string {
  return text.replaceAll(new RegExp(`${mcpReference(serverId, '')}(\\w+)`, 'g'), '{$1}');
}

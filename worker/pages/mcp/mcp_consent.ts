import { html } from 'hono/html';
import { commandDangers } from '../../../shared/mcp/command_dangers.ts';
import { mcpReference } from '../../../shared/mcp/references.ts';
import type { McpServerRecord } from '../../../shared/wire/mcp/mcp_servers.ts';
import { codeBlock } from '../components/code_block.ts';
import { definitionList } from '../components/definition_list.ts';
import { foreignCommand } from '../components/foreign_command.ts';
import { foreignText } from '../components/foreign_text.ts';
import type { Html } from '../frame/html.ts';

/** What a machine asks before it starts a local server, and how it is asked: no page can answer for it. */
export function consentPanel(server: McpServerRecord): Html {
  const { id, name, command, env, version, isolation, registry_id: registryId } = server;
  const variables = Object.entries(env);
  const dangers = commandDangers(command, env);
  const isUnchecked = dangers.some(({ severity }) => severity === 'unchecked');
  return html`<section class="panel" aria-labelledby="machine-title">
    <h2 id="machine-title">On each machine, once</h2>
    <p>This shows what is started, and asks. No page can answer for the machine.</p>
    ${codeBlock(`svc mcp consent ${name}`)}
    ${
      isUnchecked
        ? html`<p>
            <strong>Nobody checked what this runs.</strong> It asks for the server’s name in place of a yes, about just
            this:
          </p>`
        : html`<p>It asks <strong>“Run this on this machine with your rights?”</strong> about just this:</p>`
    }
    ${foreignCommand(command.map((word) => readable(id, word)))}
    ${definitionList([
      [
        'With',
        variables.length === 0
          ? null
          : html`<ul class="plain">
              ${variables.map(([key, value]) => html`<li><code>${foreignText(key)}=${foreignText(readable(id, value))}</code></li>`)}
            </ul>`,
      ],
      ['Version', version === null ? 'none is named' : foreignText(version)],
      ['From', registryId === null ? 'registered by hand' : html`the registry: ${foreignText(registryId)}`],
      ['Isolation', isolation === 'container' ? 'in a container' : 'a program of yours, with your rights'],
      ...dangers.map(
        ({ severity, message }) =>
          [severity === 'unchecked' ? 'Unchecked' : 'Warning', foreignText(`it ${message}`)] as const,
      ),
    ])}
    <p class="quiet small">
      When any of it changes, wherever that was done, the server stops on that machine until somebody there says yes
      again.
    </p>
  </section>`;
}

/** A reference as the name of its credential in braces. */
export function readable(serverId: string, text: string): string {
  return text.replaceAll(new RegExp(`${mcpReference(serverId, '')}(\\w+)`, 'g'), '{$1}');
}

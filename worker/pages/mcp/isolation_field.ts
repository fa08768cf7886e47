import type { InstallPreview } from '../../../shared/wire/marketplace.ts';
import { isContainerCommand } from '../../../shared/mcp/server_isolation.ts';
import { type FormState, radioField } from '../components/form_field.ts';
import type { Html } from '../frame/html.ts';

/**
 * How a local server runs. The first choice is apart from the machine: a control plane does not know the machine, and a server
 * that does not start there says what to do, while a program with the user's rights cannot be taken back.
 */
export function isolationField(form: FormState): Html {
  return radioField(form, {
    name: 'isolation',
    label: 'Isolation',
    choices: [
      { value: 'container', title: 'In a container, or in a sandbox where there is none' },
      { value: 'process', title: 'A program with your rights' },
    ],
    hint: `In a container or a sandbox it reads no files of the machine, and reaches only the hosts that you consent to. Choose a program
      with your rights only if you trust it as you trust yourself.`,
  });
}

/** Whether the user chooses how it runs: a remote server runs elsewhere, and its own `docker run` is a container already. */
export function hasIsolationChoice({ mode, command }: Pick<InstallPreview, 'mode' | 'command'>): boolean {
  return mode === 'local' && !isContainerCommand(command);
}

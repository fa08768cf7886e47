// A button that copies the text of its element.

const SHOWN_MS = 2_000;

/** @param {HTMLElement} element */
export function start(element) {
  const text = element.textContent?.trim() ?? '';
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'compact copy';
  button.textContent = 'Copy';
  const said = document.createElement('span');
  said.className = 'hidden-but-read';
  said.setAttribute('role', 'status');
  element.append(button, said);
  button.addEventListener('click', () => void copy(text, button, said));
}

/**
 * @param {string} text
 * @param {HTMLElement} button
 * @param {HTMLElement} said
 */
async function copy(text, button, said) {
  const done = await navigator.clipboard.writeText(text).then(
    () => 'Copied',
    () => 'Not copied',
  );
  button.textContent = done;
  said.textContent = done;
  setTimeout(() => {
    button.textContent = 'Copy';
    said.textContent = '';
  }, SHOWN_MS);
}

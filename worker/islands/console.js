// Starts the islands of a page: elements that work without scripts, and better with these.

/** @typedef {{ start: (element: HTMLElement) => void }} Island */

/** @type {Readonly<Record<string, () => Promise<Island>>>} */
const ISLANDS = {
  copy: () => import('./copy.js'),
  'live-list': () => import('./live_list.js'),
  'live-form': () => import('./live_form.js'),
  search: () => import('./search.js'),
};

/** @param {ParentNode} root */
async function startIslands(root) {
  for (const element of root.querySelectorAll('[data-island]')) {
    if (!(element instanceof HTMLElement)) continue;
    const load = ISLANDS[element.dataset['island'] ?? ''];
    if (load !== undefined) (await load()).start(element);
  }
}

document.addEventListener('svc:shown', ({ target }) => {
  if (target instanceof HTMLElement) void startIslands(target);
});
void startIslands(document);
